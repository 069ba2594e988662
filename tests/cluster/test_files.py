"""The files of cluster/ as they are: what Ray and Kubernetes make of them, what they install, and who they let in."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from cluster.kuberay_fields import SPECS

CLUSTER = Path(__file__).parents[2] / "cluster"
README = (CLUSTER / "README.md").read_text()
LAUNCHED = ["aws.yaml", "gcp.yaml", "on-prem.yaml"]
COMMANDS = (
    "initialization_commands",
    "setup_commands",
    "head_setup_commands",
    "worker_setup_commands",
    "head_start_ray_commands",
    "worker_start_ray_commands",
)


def launched(name):
    return yaml.safe_load((CLUSTER / name).read_text())


def kubernetes():
    return {resource["kind"]: resource for resource in yaml.safe_load_all((CLUSTER / "kuberay.yaml").read_text())}


def cluster_specs():
    found = kubernetes()
    return [found["RayCluster"]["spec"], found["RayJob"]["spec"]["rayClusterSpec"]]


def locked():
    lines = (CLUSTER.parent / "requirements.lock").read_text().splitlines()
    return dict(line.split(" ")[0].split("==") for line in lines if "==" in line and not line.startswith("#"))


@pytest.mark.parametrize("name", LAUNCHED)
def test_ray_takes_the_file_as_it_stands_and_with_its_defaults(name):
    """`ray up` fills the file up with defaults, then checks it again."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    schema = json.loads((Path(sys.modules["ray.autoscaler"].__file__).parent / "ray-schema.json").read_text())
    config = launched(name)
    jsonschema.validate(config, schema)
    prepared = prepare_config(config)
    validate_config(prepared)
    assert prepared["head_setup_commands"][: len(config["setup_commands"])] == config["setup_commands"]


def test_a_typing_error_in_a_file_is_found():
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = launched("aws.yaml")
    config["available_node_types"]["worker"]["min_worker"] = 1
    with pytest.raises(jsonschema.ValidationError, match="min_worker"):
        validate_config(prepare_config(config))


def test_all_own_machines_are_in_the_cluster():
    from ray.autoscaler._private.util import prepare_config

    config = launched("on-prem.yaml")
    (node_type,) = prepare_config(config)["available_node_types"].values()
    assert node_type["min_workers"] == node_type["max_workers"] == len(config["provider"]["worker_ips"])


@pytest.mark.parametrize("name", LAUNCHED)
def test_nodes_get_the_package_at_the_locks_versions(name):
    """The commands are those of on-prem.yaml, with which a cluster is started in test_real_cluster.py."""
    config = launched(name)
    assert config["setup_commands"] == launched("on-prem.yaml")["setup_commands"]
    assert config["file_mounts"] == launched("on-prem.yaml")["file_mounts"]
    for command in (command for kind in COMMANDS for command in config.get(kind, ())):
        assert "pip install" not in command or "--constraint ~/lit_sb3_ray/requirements.lock" in command
    shipped = [path for path in config["file_mounts"].values() if not path.startswith("~")]
    assert all((CLUSTER.parent / path).exists() for path in shipped)


def test_what_is_shipped_is_all_that_an_installation_needs(tmp_path):
    """A build from nothing but the shipped files has every module of the package."""
    for there, here in launched("on-prem.yaml")["file_mounts"].items():
        if not here.startswith("~"):
            place = tmp_path / "source" / Path(there).name
            place.parent.mkdir(exist_ok=True)
            place.symlink_to((CLUSTER.parent / here).resolve())
    build = ["setup.py", "-q", "build", "--build-base", tmp_path / "build"]
    command = [sys.executable, *build, "egg_info", "-e", tmp_path]
    subprocess.run(command, cwd=tmp_path / "source", check=True, capture_output=True)
    built = {path.relative_to(tmp_path / "build/lib") for path in (tmp_path / "build/lib").rglob("*.py")}
    assert {path.relative_to(CLUSTER.parent) for path in (CLUSTER.parent / "lit_sb3_ray").rglob("*.py")} <= built
    assert (tmp_path / "build/lib/lit_sb3_ray/hyperparams/ppo.yml").is_file()


def test_the_image_has_what_is_shipped_to_nodes():
    copied = re.findall(r"^COPY \S+ (.*) \S+$", (CLUSTER / "Dockerfile").read_text(), re.M)
    shipped = {path for path in launched("on-prem.yaml")["file_mounts"].values() if not path.startswith("~")}
    assert {path for paths in copied for path in paths.split()} == shipped


def test_every_version_that_is_named_is_the_locks():
    versions = locked()
    ray = versions["ray"]
    assert [spec["rayVersion"] for spec in cluster_specs()] == [ray, ray]
    assert re.search(r"^FROM rayproject/ray:(\S+?)-py311", (CLUSTER / "Dockerfile").read_text(), re.M).group(1) == ray
    for path in CLUSTER.iterdir():
        for name, version in re.findall(r"([\w.-]+)==([\w.]+)", path.read_text()) if path.is_file() else ():
            assert versions[name] == version, f"{path.name}: {name}"
        for version in re.findall(r"rayproject/ray:([\d.]+)-", path.read_text()):
            assert version == ray, path.name


def test_the_image_has_the_packages_version():
    import lit_sb3_ray

    for path in (CLUSTER / "kuberay.yaml", CLUSTER / "Dockerfile", CLUSTER / "README.md"):
        assert set(re.findall(r"REGISTRY/lit-sb3-ray:([\w.]+)", path.read_text())) == {lit_sb3_ray.__version__}


@pytest.mark.parametrize("name", LAUNCHED)
def test_every_node_asks_for_the_token_and_tells_nobody_about_its_use(name):
    config = launched(name)
    starts = [*config["head_start_ray_commands"], *config["worker_start_ray_commands"]]
    starts = [command for command in starts if "ray start" in command]
    assert len(starts) == 2
    assert all("RAY_AUTH_MODE=token" in command and "RAY_USAGE_STATS_ENABLED=0" in command for command in starts)
    assert config["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    assert "--dashboard-host=127.0.0.1" in starts[0]
    assert not [command for command in starts if "0.0.0.0" in command]


@pytest.mark.parametrize("name", LAUNCHED)
def test_bash_understands_every_command(name):
    config = launched(name)
    for command in (command for kind in COMMANDS for command in config.get(kind, ())):
        subprocess.run(["bash", "-n", "-c", command], check=True)


@pytest.mark.parametrize("name", LAUNCHED)
def test_trials_do_not_take_over_what_ray_up_gives_its_own_commands(name):
    """That is one thread and no warnings; the file would give them to whatever runs on a node."""
    from ray.autoscaler._private.command_runner import _with_interactive

    given = re.search(r"export (.*?) && ", " ".join(_with_interactive("true")))[1]
    variables = [word.split("=")[0] for word in given.split()]
    config = launched(name)
    starts = [*config["head_start_ray_commands"], *config["worker_start_ray_commands"]]
    starts = [command for command in starts if "ray start" in command]
    assert [command.split(";")[0] for command in starts] == [f"unset {' '.join(variables)}"] * 2


def test_workers_in_the_cloud_have_the_identity_that_ray_makes_for_the_head():
    """Ray's own modules for AWS and Google Cloud need packages that are not installed here."""
    providers = Path(sys.modules["ray.autoscaler"].__file__).parent / "_private"
    aws, gcp = ((providers / name / "config.py").read_text() for name in ("aws", "gcp"))
    assert 'RAY = "ray-autoscaler"' in aws and 'DEFAULT_RAY_INSTANCE_PROFILE = RAY + "-v1"' in aws
    profile = launched("aws.yaml")["available_node_types"]["worker"]["node_config"]["IamInstanceProfile"]
    assert profile == {"Name": "ray-autoscaler-v1"}
    # What the head may do does not include that: README.md tells to grant it.
    policy = json.loads(re.search(r"--policy-document \\\n\s*'(.*?)'", README, re.S)[1])
    (statement,) = policy["Statement"]
    assert (statement["Action"], statement["Resource"].split("/")[-1]) == ("iam:PassRole", "ray-autoscaler-v1")
    assert 'RAY + "-sa-" + VERSION' in gcp and 'VERSION = "v1"' in gcp and "roles/iam.serviceAccountUser" in gcp
    config = launched("gcp.yaml")
    (account,) = config["available_node_types"]["worker"]["node_config"]["serviceAccounts"]
    assert account["email"] == f"ray-autoscaler-sa-v1@{config['provider']['project_id']}.iam.gserviceaccount.com"
    assert f"--member=serviceAccount:{account['email']}" in README


def test_kubernetes_takes_the_fields():
    for kind, schema in SPECS.items():
        resource = kubernetes()[kind]
        assert resource["apiVersion"] == "ray.io/v1"
        jsonschema.validate(resource["spec"], schema)


def test_a_field_that_kubernetes_does_not_know_is_found():
    spec = kubernetes()["RayCluster"]["spec"]
    spec["workerGroupSpecs"][0]["minReplica"] = 1
    with pytest.raises(jsonschema.ValidationError, match="minReplica"):
        jsonschema.validate(spec, SPECS["RayCluster"])


def test_pods_ask_for_the_token_and_only_they_and_the_operator_reach_them():
    found = kubernetes()
    policy = found["NetworkPolicy"]["spec"]
    for spec in cluster_specs():
        assert spec["authOptions"] == {"mode": "token"}
        for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
            pod = group["template"]
            assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
            claims = [volume["persistentVolumeClaim"]["claimName"] for volume in pod["spec"]["volumes"]]
            assert claims == [found["PersistentVolumeClaim"]["metadata"]["name"]]
            # The image's user is none that may write into a volume by itself.
            assert pod["spec"]["securityContext"]["fsGroup"] == 100
            for container in pod["spec"]["containers"]:
                assert {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"} in container["env"]
    assert policy["policyTypes"] == ["Ingress"]
    assert all(rule["from"] for rule in policy["ingress"])


def test_a_studys_own_cluster_is_the_cluster_that_stays():
    """But for the dashboard, which only the operator has to reach from outside of the head."""
    staying, own = cluster_specs()
    hosts = [spec["headGroupSpec"]["rayStartParams"].pop("dashboard-host") for spec in (staying, own)]
    assert hosts == ["127.0.0.1", "0.0.0.0"]
    assert staying == own


def test_a_studys_own_cluster_leaves_all_of_it_on_the_volume():
    """Its pods go with it."""
    from lit_sb3_ray.cli.tune import build_parser

    job = kubernetes()["RayJob"]["spec"]
    given = build_parser().parse_args(shlex.split(job["entrypoint"])[4:])
    (container,) = job["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    for path in (given.storage_path, given.log_folder, given.storage):
        assert Path(mount["mountPath"]) in Path(path).parents


@pytest.mark.parametrize("path", sorted(path for path in CLUSTER.iterdir() if path.is_file()), ids=lambda path: path.name)
def test_no_file_holds_a_secret(path):
    text = path.read_text()
    assert not re.search(r"\b[0-9a-f]{32,}\b", text)
    assert not re.search(r"RAY_AUTH_TOKEN=(?!\$)\S", text)
    assert "BEGIN" not in text or "PRIVATE KEY" not in text


@pytest.mark.parametrize("name", [*LAUNCHED, "kuberay.yaml"])
def test_names_are_such_that_files_can_be_mounted(name):
    """A colon or a blank in a cluster's name ends up in paths."""
    resources = yaml.safe_load_all((CLUSTER / name).read_text())
    names = [one["cluster_name"] if "cluster_name" in one else one["metadata"].get("name", "generated") for one in resources]
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", one) for one in names)


def told_studies():
    """Every command line of a study in the README and the files."""
    texts = [path.read_text() for path in sorted(CLUSTER.iterdir()) if path.suffix in {".md", ".sbatch", ".py"}]
    texts.append(kubernetes()["RayJob"]["spec"]["entrypoint"])
    lines = (line for text in texts for line in re.sub(r"\\\n#?", " ", text).splitlines())
    return [match.group(1) for line in lines if (match := re.search(r"\btune (--(?:algo|resume) .*)$", line))]


def test_the_studies_that_are_told_are_understood():
    from lit_sb3_ray.cli.tune import build_parser

    commands = told_studies()
    assert len(commands) >= 6
    for command in commands:
        parsed = build_parser().parse_args(shlex.split(command))
        assert parsed.algo == "ppo" and (parsed.env == "CartPole-v1" or parsed.resume)


def told_commands():
    """Every command of Ray's own in the README, and those in its text that have flags or a cluster's file."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", README, re.S | re.M)
    lines = [
        line.split(" #")[0].split(" > ")[0].rstrip(" &")
        for block in blocks
        for line in re.sub(r"\\\n", " ", block).splitlines()
    ]
    inline = re.findall(r"`(ray [a-z-]+ [^`]*(?:yaml|--)[^`]*)`", README)
    return [line.strip() for line in (*lines, *inline) if line.strip().startswith("ray ")]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_rays_own_commands_that_are_told_are_understood(monkeypatch):
    import click
    from ray.scripts.scripts import cli

    monkeypatch.chdir(CLUSTER.parent)
    commands = told_commands()
    assert {command.split()[1] for command in commands} >= {"up", "down", "exec", "attach", "monitor", "job", "dashboard"}
    for line in commands:
        command, words = cli, shlex.split(line)[1:]
        while isinstance(command, click.Group):
            command, words = command.commands[words[0]], words[1:]
        command.make_context(line, words)
