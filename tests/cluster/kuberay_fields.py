"""The fields of KubeRay's resources that a cluster file may use, after the types of its API (ray.io/v1, KubeRay 1.6).

The definition that Kubernetes checks resources against has a megabyte, most of it the fields of pods; this is the part that
belongs to Ray, and of pods what a file for Ray needs. What is not named here is refused.
"""


def _object(properties, required=()):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _map(values):
    return {"type": "object", "additionalProperties": values}


STRING = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
FLAG = {"type": "boolean"}
STRINGS = _map(STRING)
# A quantity, as Kubernetes takes it: whole, in thousandths, or with a unit.
QUANTITIES = _map({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|Ki|Mi|Gi|Ti|M|G|T)?$"})
RESOURCES = _object({"requests": QUANTITIES, "limits": QUANTITIES})
SECRET_KEY = _object({"secretKeyRef": _object({"name": STRING, "key": STRING}, ["name", "key"])})
ENVIRONMENT = {"type": "array", "items": _object({"name": STRING, "value": STRING, "valueFrom": SECRET_KEY}, ["name"])}
MOUNT = _object({"name": STRING, "mountPath": STRING, "subPath": STRING, "readOnly": FLAG}, ["name", "mountPath"])
CONTAINER = _object(
    {
        "name": {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        "image": STRING,
        "imagePullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
        "resources": RESOURCES,
        "env": ENVIRONMENT,
        "volumeMounts": {"type": "array", "items": MOUNT},
    },
    ["name", "image"],
)
VOLUME = _object(
    {"name": STRING, "persistentVolumeClaim": _object({"claimName": STRING, "readOnly": FLAG}, ["claimName"])}, ["name"]
)
POD = _object(
    {
        "metadata": _object({"labels": STRINGS, "annotations": STRINGS}),
        "spec": _object(
            {
                "containers": {"type": "array", "items": CONTAINER, "minItems": 1},
                "volumes": {"type": "array", "items": VOLUME},
                "nodeSelector": STRINGS,
                "securityContext": _object(
                    {"fsGroup": COUNT, "fsGroupChangePolicy": {"enum": ["Always", "OnRootMismatch"]}, "runAsUser": COUNT}
                ),
                "serviceAccountName": STRING,
            },
            ["containers"],
        ),
    },
    ["spec"],
)
HEAD = _object(
    {"rayStartParams": STRINGS, "template": POD, "serviceType": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]}},
    ["rayStartParams", "template"],
)
WORKERS = _object(
    {
        "groupName": STRING,
        "replicas": COUNT,
        "minReplicas": COUNT,
        "maxReplicas": COUNT,
        "idleTimeoutSeconds": COUNT,
        "numOfHosts": COUNT,
        "rayStartParams": STRINGS,
        "template": POD,
    },
    ["groupName", "minReplicas", "maxReplicas", "rayStartParams", "template"],
)
CLUSTER = _object(
    {
        "rayVersion": STRING,
        "suspend": FLAG,
        "authOptions": _object({"mode": {"enum": ["disabled", "token"]}, "secretName": STRING}),
        "enableInTreeAutoscaling": FLAG,
        "autoscalerOptions": _object(
            {
                "idleTimeoutSeconds": COUNT,
                "upscalingMode": {"enum": ["Default", "Aggressive", "Conservative"]},
                "version": {"enum": ["v1", "v2"]},
                "resources": RESOURCES,
                "env": ENVIRONMENT,
            }
        ),
        "headGroupSpec": HEAD,
        "workerGroupSpecs": {"type": "array", "items": WORKERS},
    },
    ["headGroupSpec"],
)
JOB = _object(
    {
        "entrypoint": STRING,
        "runtimeEnvYAML": STRING,
        "submissionMode": {"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]},
        "shutdownAfterJobFinishes": FLAG,
        "ttlSecondsAfterFinished": COUNT,
        "activeDeadlineSeconds": {"type": "integer", "minimum": 1},
        "backoffLimit": COUNT,
        "entrypointNumCpus": {"type": "number"},
        "entrypointNumGpus": {"type": "number"},
        "clusterSelector": STRINGS,
        "rayClusterSpec": CLUSTER,
    }
)
SPECS = {"RayCluster": CLUSTER, "RayJob": JOB}
