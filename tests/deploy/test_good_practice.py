"""What a careful operator would look for in the manifests, one rule to a test."""

import re

import pytest

from tests.deploy.manifests import OVERLAYS, Pod, all_pods, as_bytes, config_data, of_kind, our_pod, our_pods, pods

every_pod = pytest.mark.parametrize("pod", all_pods(), ids=str)
every_pod_of_ours = pytest.mark.parametrize("pod", our_pods(), ids=str)
every_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


def long_lived(pod: Pod) -> bool:
    return bool(pod.owner["kind"] != "Job")


# Who a container may be, and what it may do


@every_pod
def test_nobody_runs_as_root(pod: Pod) -> None:
    context = pod.spec["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] >= 900
    assert context["runAsGroup"] >= 900


@every_pod
def test_system_calls_are_filtered(pod: Pod) -> None:
    assert pod.spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


@every_pod
def test_no_container_has_or_gains_privileges(pod: Pod) -> None:
    for container in pod.containers:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not context.get("privileged")


@every_pod_of_ours
def test_the_root_file_system_is_read_only_and_there_is_a_place_for_what_is_written(pod: Pod) -> None:
    writable = {volume["name"] for volume in pod.spec["volumes"] if "emptyDir" in volume}
    for container in pod.containers:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in writable}


@every_pod
def test_nobody_is_given_a_token_of_the_cluster_s_api(pod: Pod) -> None:
    assert pod.spec["automountServiceAccountToken"] is False
    assert pod.spec["enableServiceLinks"] is False


@every_pod_of_ours
def test_ours_have_an_account_of_their_own(pod: Pod) -> None:
    account = of_kind(pod.overlay, "ServiceAccount")[pod.spec["serviceAccountName"]]
    assert account["automountServiceAccountToken"] is False


@every_pod
def test_nobody_shares_what_belongs_to_the_node(pod: Pod) -> None:
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod.spec)
    assert not [volume for volume in pod.spec.get("volumes", []) if "hostPath" in volume]


@every_overlay
def test_the_namespace_refuses_what_is_not_restricted(overlay: str) -> None:
    (namespace,) = of_kind(overlay, "Namespace").values()
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


# What it gets


@every_pod
def test_every_container_says_what_it_needs_and_how_much_memory_it_may_take(pod: Pod) -> None:
    for container in pod.containers:
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        requested, most = (as_bytes(container["resources"][each]["memory"]) for each in ("requests", "limits"))
        assert requested <= most


@every_pod_of_ours
def test_no_cpu_limit_holds_up_a_heartbeat(pod: Pod) -> None:
    assert all("cpu" not in container["resources"]["limits"] for container in pod.containers)


@every_pod
def test_every_image_is_of_a_version(pod: Pod) -> None:
    for container in pod.containers:
        assert re.fullmatch(r"[a-z0-9./-]+:[0-9][\w.-]*(@sha256:[0-9a-f]{64})?", container["image"]), container["image"]


# Whether it lives


@every_pod
def test_whoever_stays_is_probed(pod: Pod) -> None:
    for container in pod.spec["containers"]:
        assert long_lived(pod) == ({"readinessProbe", "livenessProbe"} <= container.keys())


@every_pod_of_ours
def test_a_slow_start_is_not_taken_for_death(pod: Pod) -> None:
    for container in pod.spec["containers"]:
        if long_lived(pod):
            probe = container["startupProbe"]
            assert probe["periodSeconds"] * probe["failureThreshold"] >= 60


@every_pod_of_ours
def test_all_but_the_migration_wait_for_the_schema(pod: Pod) -> None:
    if long_lived(pod) and pod.name != "fake-providers":
        (waiting,) = pod.spec["initContainers"]
        assert waiting["args"] == ["migrate", "--wait"]


# How it is moved, replaced and spread


@every_overlay
def test_what_matters_may_be_drained_one_at_a_time(overlay: str) -> None:
    budgets = of_kind(overlay, "PodDisruptionBudget").values()
    for pod in pods(overlay):
        if pod.owner["kind"] != "Deployment" or pod.name == "fake-providers":
            continue
        selector = pod.owner["spec"]["selector"]
        (budget,) = [each for each in budgets if each["spec"]["selector"] == selector]
        assert budget["spec"]["maxUnavailable"] == (0 if pod.name == "actors-agent-local" else 1)


@every_overlay
def test_agents_are_alone_in_their_pods_and_nobody_s_to_tidy_away(overlay: str) -> None:
    pod = our_pod(overlay, "actors-agent-local")
    annotations = pod.owner["spec"]["template"]["metadata"]["annotations"]
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert annotations["karpenter.sh/do-not-disrupt"] == "true"
    (container,) = pod.spec["containers"]
    assert {"name": "WINDLASS_ACTOR_THREADS", "value": "1"} in container["env"]


@every_overlay
def test_a_rollout_takes_nobody_away_before_the_new_one_is_ready(overlay: str) -> None:
    for name, deployment in of_kind(overlay, "Deployment").items():
        if name != "fake-providers":
            assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


@every_pod_of_ours
def test_pods_are_spread_over_zones_and_machines(pod: Pod) -> None:
    if pod.owner["kind"] == "Deployment" and pod.name != "fake-providers":
        spread = pod.spec["topologySpreadConstraints"]
        assert {each["topologyKey"] for each in spread} == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
        for each in spread:
            assert each["labelSelector"] == pod.owner["spec"]["selector"]


@every_overlay
def test_those_who_scale_own_the_number_of_replicas(overlay: str) -> None:
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in of_kind(overlay, "ScaledObject").values()}
    scaled |= {each["spec"]["scaleTargetRef"]["name"] for each in of_kind(overlay, "HorizontalPodAutoscaler").values()}
    deployments = of_kind(overlay, "Deployment")
    assert scaled <= deployments.keys()
    assert {name for name, each in deployments.items() if "replicas" not in each["spec"]} == scaled


def test_two_of_each_are_there_in_production() -> None:
    deployments = of_kind("production", "Deployment")
    assert deployments["dispatcher"]["spec"]["replicas"] >= 2
    assert deployments["janitor"]["spec"]["replicas"] >= 2
    assert of_kind("production", "HorizontalPodAutoscaler")["api"]["spec"]["minReplicas"] >= 2


@every_overlay
def test_selectors_find_their_pods_and_only_those(overlay: str) -> None:
    for pod in pods(overlay):
        selector = pod.owner["spec"].get("selector", {}).get("matchLabels")
        if selector is not None:
            found = [other.name for other in pods(overlay) if selector.items() <= other.labels.items()]
            assert found == [pod.name]


@every_overlay
def test_every_service_leads_to_a_port_of_some_pod(overlay: str) -> None:
    for service in of_kind(overlay, "Service").values():
        (pod,) = [each for each in pods(overlay) if service["spec"]["selector"].items() <= each.labels.items()]
        ports = {port["name"] for container in pod.containers for port in container.get("ports", [])}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


@every_overlay
def test_scaling_down_is_slow(overlay: str) -> None:
    """Whoever is sent away has to hand its work back or finish it."""
    for each in of_kind(overlay, "ScaledObject").values():
        behavior = each["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0
        assert behavior["scaleDown"]["stabilizationWindowSeconds"] >= 60
        assert behavior["scaleDown"]["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 30}]
        assert each["spec"]["cooldownPeriod"] >= 60


@every_overlay
def test_pools_scale_to_none_and_nobody_is_sent_away_while_postgres_is_silent(overlay: str) -> None:
    for each in of_kind(overlay, "ScaledObject").values():
        assert each["spec"]["minReplicaCount"] == 0
        assert each["spec"]["fallback"]["behavior"] == "currentReplicasIfHigher"
        assert each["spec"]["fallback"]["replicas"] >= 1


# The servers in production


def test_an_accepted_task_survives_the_loss_of_any_one_postgres() -> None:
    (cluster,) = of_kind("production", "Cluster").values()
    assert cluster["spec"]["instances"] >= 3
    assert cluster["spec"]["postgresql"]["synchronous"] == {"method": "any", "number": 1, "dataDurability": "required"}
    assert cluster["spec"]["postgresql"]["parameters"]["synchronous_commit"] == "on"
    assert cluster["spec"]["affinity"]["podAntiAffinityType"] == "required"


def test_rabbitmq_has_three_nodes_and_quorum_queues() -> None:
    (cluster,) = of_kind("production", "RabbitmqCluster").values()
    assert cluster["spec"]["replicas"] == 3
    assert "cluster_partition_handling = pause_minority" in cluster["spec"]["rabbitmq"]["additionalConfig"]
    assert config_data("production", "windlass-settings")["WINDLASS_QUEUE_TYPE"] == "quorum"


def test_files_are_in_a_bucket_where_there_is_more_than_one_machine() -> None:
    assert config_data("production", "windlass-settings")["WINDLASS_MEDIA_STORAGE"].startswith("s3://")


# Who goes first


@every_pod
def test_servers_and_services_go_before_workers(pod: Pod) -> None:
    """Postgres waited for room behind workers that could do nothing without it."""
    if pod.owner["kind"] == "StatefulSet":
        expected = "windlass-servers"
    elif pod.owner["kind"] == "Job" or pod.name in {"api", "dispatcher", "janitor", "orchestrator"}:
        expected = "windlass-services"
    else:
        expected = None
    assert pod.spec.get("priorityClassName") == expected


@every_overlay
def test_each_priority_that_is_named_is_there(overlay: str) -> None:
    classes = of_kind(overlay, "PriorityClass")
    assert classes["windlass-servers"]["value"] > classes["windlass-services"]["value"] > 0
    named = {each.spec["priorityClassName"] for each in pods(overlay) if "priorityClassName" in each.spec}
    assert named <= classes.keys()


def test_rabbitmq_s_cookie_keeps_its_mode() -> None:
    """Where the kubelet gives a volume to a group, it lets the group write; Erlang refuses such a cookie."""
    assert our_pod("dev", "windlass-rabbitmq").spec["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
