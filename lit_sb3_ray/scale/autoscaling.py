"""Whether a cluster may still grow. Ray has no public answer, so what is private to it is here alone."""

from __future__ import annotations

import json

import ray
from ray._private.ray_constants import DEBUG_AUTOSCALING_STATUS
from ray.autoscaler.v2.sdk import get_cluster_status
from ray.autoscaler.v2.utils import is_autoscaler_v2
from ray.experimental.internal_kv import _internal_kv_get


def may_grow() -> bool:
    """Tells whether an autoscaler may add nodes to the cluster that this process is connected to.

    Nodes that an autoscaler manages have types, named in its configuration. Where there is none, Ray names the type of each
    node after the node itself.
    """
    themselves = {f"node_{node['NodeID']}" for node in ray.nodes()}  # type: ignore[no-untyped-call]
    return not _node_types() <= themselves


def _node_types() -> set[str]:
    """Lists the types of the nodes that run, as the autoscaler of either generation tells them."""
    if is_autoscaler_v2(fetch_from_server=True):
        status = get_cluster_status(ray.get_runtime_context().gcs_address)
        return {node.ray_node_type_name for node in (*status.active_nodes, *status.idle_nodes)}
    told = _internal_kv_get(DEBUG_AUTOSCALING_STATUS)
    report = json.loads(told).get("autoscaler_report") if told else None
    return set() if report is None else set(report["active_nodes"])
