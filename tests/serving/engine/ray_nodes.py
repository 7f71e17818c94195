"""A Ray cluster on loopback: `python -m tests.serving.engine.ray_nodes --second HOME_OF_THE_SECOND_NODE`.

Without --second there is one node, of two processors and a GPU as Ray counts them, whether or not
the machine has one. Prints a JSON line with its address and its nodes' ids. Each line of its input
is the start of a node's id: that node is killed, and the line is printed back. At the end of its
input it ends. A process of its own, because Ray ends whoever has lost its cluster.
"""

from __future__ import annotations

import json
import os
import sys

# Ray gives its own processes 10 s to come up, which a busy machine does not always keep.
os.environ.setdefault("RAY_agent_register_timeout_ms", "120000")

from ray.cluster_utils import Cluster

# When a dead node counts as dead.
NOTICE = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 10000,
    "health_check_failure_threshold": 3,
}


def main() -> None:
    second = "--second" in sys.argv
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1 if second else 2,
            "num_gpus": 0 if second else 1,
            "include_dashboard": False,
            "_system_config": NOTICE,
        },
    )
    try:
        if second:
            cluster.add_node(num_cpus=1, env_vars={"INSPECTOR_HOME": sys.argv[-1]})
        nodes = [node.node_id for node in cluster.list_all_nodes()]
        sys.stdout.write(json.dumps({"address": cluster.address, "nodes": nodes}) + "\n")
        sys.stdout.flush()
        for line in sys.stdin:
            (node,) = [n for n in cluster.list_all_nodes() if n.node_id.startswith(line.strip())]
            cluster.remove_node(node, allow_graceful=False)
            sys.stdout.write(line)
            sys.stdout.flush()
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
