"""Connect to a Ray cluster, and deploy the inspector's replicas on it.

Serve's HTTP proxies stay off: anyone who reached one could ask without the token that Ray requires.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import inspector
from inspector.errors import SettingsError, WorkerError
from inspector.program import command_line, how_to_add
from inspector.results.cluster import ClusterReport
from inspector.settings import Settings

APPLICATION = "inspector"
REPLICA = "replica"  # Serve's name of the deployment
CONNECT_SECONDS = 120.0
NOTICE_SECONDS = 60.0
KNOCK_SECONDS = 10.0
GROW_SECONDS = 5.0  # that requests wait before there is another replica; it stays for ten minutes without any
MEAN_SECONDS = 15.0  # over which their number is averaged
ADDRESS, AUTHENTICATION = "RAY_ADDRESS", "RAY_AUTH_MODE"
# Settings of the deploying program that replicas have no use for, or that are nobody's business.
NOT_FOR_REPLICAS = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|KEY|PEOPLE|PROXY|SIGN_IN|ENGINE|CHROMIUM|_RAY_")
NO_RAY = f"Ray is not installed: {how_to_add('ray')}, or set INSPECTOR_ENGINE to local."
NO_CLUSTER = (
    "The Ray cluster cannot be reached: run `RAY_AUTH_MODE=token ray start --head` on this machine, or "
    "`RAY_AUTH_MODE=token ray start --address=HEAD:6379` to join an existing cluster; if there are several, set "
    "RAY_ADDRESS."
)
NO_TOKEN = (
    "The Ray cluster rejects this machine's token, or there is none: run `ray get-auth-token "
    "--generate` on the head before `RAY_AUTH_MODE=token ray start`, and copy ~/.ray/auth_token to the other "
    "machines."
)
NO_CLIENT = (
    "RAY_ADDRESS points to another kind of server: set it to the head's HOST:6379, and run `RAY_AUTH_MODE=token ray "
    "start --address=HOST:6379` on this machine to join the cluster."
)
NO_REPLICAS = f"The inspector is not deployed on this cluster yet: run `{command_line(['cluster'])}`."
WHY = (
    "`ray status` shows whether the cluster has the processors and GPUs that they need "
    "(INSPECTOR_RAY_MIN, INSPECTOR_RAY_CPUS, INSPECTOR_RAY_GPUS)"
)
WAITING = f"The replicas are not ready yet: {WHY}."
NO_START = f"The replicas did not start: {WHY}; the logs in session_latest/logs/serve of Ray's folder show the rest."


def give_up() -> None:
    """End this program, because Ray keeps waiting for a cluster that does not answer."""
    sys.stderr.write(f"{NO_CLUSTER}\n")
    os._exit(2)


@contextmanager
def connected(*, ships: bool = False, in_vain: Callable[[], None] = give_up) -> Iterator[Any]:
    """Join the cluster that RAY_ADDRESS names, or the one of this machine, and leave it again.

    Args:
        ships: True: whatever is deployed meanwhile brings our modules along.
        in_vain: Called, in another thread, where the cluster does not answer.

    Yields:
        The module `ray`.

    Raises:
        SettingsError: If Ray is missing, or RAY_ADDRESS is not an address to join.
        WorkerError: If the cluster is not there, or refuses the token.
    """
    ray = _import_ray()
    package = str(Path(inspector.__file__).parent)
    address = address_of(os.environ)
    patience = threading.Timer(CONNECT_SECONDS, in_vain)
    patience.daemon = True
    patience.start()
    try:
        _knock(address)
        _show_token(address)
        ray.init(
            address=address,
            runtime_env={"py_modules": [package]} if ships else None,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except ray.exceptions.AuthenticationError as error:
        raise WorkerError(NO_TOKEN) from error
    except (ConnectionError, OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise WorkerError(NO_CLUSTER) from error
    finally:
        patience.cancel()
    try:
        yield ray
    finally:
        ray.shutdown()


def find_replicas() -> Any:
    """The handle of the deployment that answers.

    Raises:
        WorkerError: If there is none.
    """
    from ray import serve
    from ray.serve.exceptions import RayServeException

    try:
        return serve.get_app_handle(APPLICATION)
    except RayServeException as error:
        raise WorkerError(NO_REPLICAS) from error


def deploy(settings: Settings) -> ClusterReport:
    """Deploy replicas on the cluster, replacing any that are there.

    Raises:
        SettingsError: As `connected`.
        WorkerError: As `connected`, or if no replica comes up.
    """
    with connected(ships=True) as ray:
        from ray import serve

        serve.start(proxy_location="Disabled")
        notice = threading.Timer(NOTICE_SECONDS, lambda: sys.stderr.write(f"{WAITING}\n"))
        notice.daemon = True
        notice.start()
        try:
            serve.run(_application(settings), name=APPLICATION, route_prefix=None)
        except RuntimeError as error:
            raise WorkerError(NO_START) from error
        finally:
            notice.cancel()
        return _report(ray, settings)


def withdraw() -> None:
    """Remove the replicas from the cluster; running requests have a moment to finish.

    Raises:
        SettingsError: As `connected`.
        WorkerError: As `connected`.
    """
    with connected():
        from ray import serve

        find_replicas()
        serve.delete(APPLICATION)


def for_replicas(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings of an environment that are passed to replicas."""
    return {
        name: value
        for name, value in environ.items()
        if name.startswith("INSPECTOR_") and not NOT_FOR_REPLICAS.search(name)
    }


def _application(settings: Settings) -> Any:
    from ray import serve

    from inspector.serving.engine.ray.replica import Replica

    cluster = settings.cluster
    deployment: Any = serve.deployment(
        Replica,
        name=REPLICA,
        max_ongoing_requests=cluster.requests,
        max_queued_requests=cluster.queue,
        autoscaling_config={
            "min_replicas": cluster.least,
            "max_replicas": cluster.most,
            "target_ongoing_requests": settings.workers,
            "upscale_delay_s": GROW_SECONDS,
            "look_back_period_s": MEAN_SECONDS,
        },
        ray_actor_options={"num_cpus": cluster.cpus, "num_gpus": cluster.gpus},
    )
    return deployment.bind(for_replicas(os.environ))


def _report(ray: Any, settings: Settings) -> ClusterReport:
    from ray import serve

    resources = ray.cluster_resources()
    states: Any = serve.status().applications[APPLICATION].deployments[REPLICA].replica_states
    return ClusterReport(
        nodes=sum(node["Alive"] for node in ray.nodes()),
        cpus=resources.get("CPU", 0.0),
        gpus=resources.get("GPU", 0.0),
        replicas=states.get("RUNNING", 0),
        least_replicas=settings.cluster.least,
        most_replicas=settings.cluster.most,
        token=os.environ[AUTHENTICATION] == "token",
    )


def refuse_without_ray() -> None:
    """Say so where Ray is not installed, without importing it.

    Raises:
        SettingsError: If it is not.
    """
    if find_spec("ray") is None:
        raise SettingsError(NO_RAY)


def _import_ray() -> Any:
    """Import Ray, with its token asked for unless the environment says otherwise."""
    os.environ.setdefault(AUTHENTICATION, "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_SERVE_LOG_TO_STDERR", "0")
    refuse_without_ray()
    import ray

    return ray


def _knock(address: str) -> None:
    """See whether anybody listens there, which Ray tries for minutes."""
    host, _, port = address.rpartition(":")
    if host:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()


def _show_token(address: str) -> None:
    """Show the cluster our token: with a wrong one Ray would try to join for 20 s, and not say why.

    Raises:
        ray.exceptions.AuthenticationError: If the cluster refuses it.
        OSError: If nobody listens there.
    """
    from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled
    from ray._private.services import canonicalize_bootstrap_address_or_die
    from ray._raylet import GcsClient  # pyright: ignore[reportAttributeAccessIssue]  # of an extension

    ensure_token_if_auth_enabled()  # or its client would end this program
    found = canonicalize_bootstrap_address_or_die(address)
    _knock(found)  # a cluster of this machine that is long gone may still be written down
    GcsClient(address=found)


def address_of(environ: Mapping[str, str]) -> str:
    """Never empty: without an address, Ray would start a cluster of its own."""
    address = environ.get(ADDRESS, "").strip() or "auto"
    if "://" in address or address == "local":
        raise SettingsError(NO_CLIENT)
    return address
