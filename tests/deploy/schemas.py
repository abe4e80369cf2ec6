"""Small strict schemas of the custom resources that the manifests use: only the fields we use, and no others."""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
NUMBER: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def strict(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object with all of these fields, perhaps some of those, and nothing else."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def some(item: Schema) -> Schema:
    return {"type": "array", "items": item, "minItems": 1}


def word(*words: str) -> Schema:
    return {"enum": list(words)}


def resource(api_version: str, kind: str, spec: Schema) -> Schema:
    return strict(
        {
            "apiVersion": word(api_version),
            "kind": word(kind),
            "metadata": strict({"name": TEXT}, {"namespace": TEXT, "labels": TEXTS, "annotations": TEXTS}),
            "spec": spec,
        }
    )


SCALING_POLICY = strict({"type": word("Pods", "Percent"), "value": NUMBER, "periodSeconds": NUMBER})
SCALING_RULES = strict({"stabilizationWindowSeconds": NUMBER}, {"policies": some(SCALING_POLICY)})

SCALED_OBJECT = resource(
    "keda.sh/v1alpha1",
    "ScaledObject",
    strict(
        {
            "scaleTargetRef": strict({"name": TEXT}),
            "minReplicaCount": NUMBER,
            "maxReplicaCount": NUMBER,
            "pollingInterval": NUMBER,
            "cooldownPeriod": NUMBER,
            "fallback": strict(
                {
                    "failureThreshold": NUMBER,
                    "replicas": NUMBER,
                    "behavior": word("static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"),
                }
            ),
            "advanced": strict(
                {
                    "horizontalPodAutoscalerConfig": strict(
                        {"behavior": strict({"scaleUp": SCALING_RULES, "scaleDown": SCALING_RULES})}
                    )
                }
            ),
            "triggers": some(
                strict(
                    {
                        "type": word("postgresql"),
                        "metricType": word("AverageValue"),
                        # KEDA takes the metadata of a trigger as text, numbers too.
                        "metadata": strict(
                            dict.fromkeys(
                                (
                                    "host", "port", "dbName", "userName", "sslmode", "query", "targetQueryValue",
                                    "activationTargetQueryValue",
                                ),
                                TEXT,
                            )
                        ),
                        "authenticationRef": strict({"name": TEXT}),
                    }
                )
            ),
        }
    ),
)  # fmt: skip

TRIGGER_AUTHENTICATION = resource(
    "keda.sh/v1alpha1",
    "TriggerAuthentication",
    strict({"secretTargetRef": some(strict({"parameter": TEXT, "name": TEXT, "key": TEXT}))}),
)

RESOURCES = strict({"requests": TEXTS, "limits": TEXTS})
LABEL_SELECTOR = strict({"matchLabels": TEXTS})

POSTGRES_CLUSTER = resource(
    "postgresql.cnpg.io/v1",
    "Cluster",
    strict(
        {
            "instances": NUMBER,
            "imageName": TEXT,
            "primaryUpdateStrategy": word("unsupervised", "supervised"),
            "enablePDB": FLAG,
            "priorityClassName": TEXT,
            "bootstrap": strict(
                {
                    "initdb": strict(
                        dict.fromkeys(("database", "owner", "encoding", "localeCollate", "localeCType"), TEXT)
                    )
                }
            ),
            "postgresql": strict(
                {
                    "synchronous": strict(
                        {
                            "method": word("any", "first"),
                            "number": NUMBER,
                            "dataDurability": word("required", "preferred"),
                        }
                    ),
                    "parameters": TEXTS,
                }
            ),
            "managed": strict(
                {
                    "roles": some(
                        strict(
                            {
                                "name": TEXT,
                                "ensure": word("present"),
                                "login": FLAG,
                                "connectionLimit": NUMBER,
                                "passwordSecret": strict({"name": TEXT}),
                            }
                        )
                    )
                }
            ),
            "affinity": strict(
                {
                    "enablePodAntiAffinity": FLAG,
                    "podAntiAffinityType": word("required", "preferred"),
                    "topologyKey": TEXT,
                }
            ),
            "topologySpreadConstraints": some(
                strict(
                    {
                        "maxSkew": NUMBER,
                        "topologyKey": TEXT,
                        "whenUnsatisfiable": word("ScheduleAnyway", "DoNotSchedule"),
                        "labelSelector": LABEL_SELECTOR,
                    }
                )
            ),
            "resources": RESOURCES,
            "storage": strict({"size": TEXT}),
            "walStorage": strict({"size": TEXT}),
        }
    ),
)

RABBITMQ_CLUSTER = resource(
    "rabbitmq.com/v1beta1",
    "RabbitmqCluster",
    strict(
        {
            "replicas": NUMBER,
            "image": TEXT,
            "resources": RESOURCES,
            "persistence": strict({"storage": TEXT}),
            "override": strict(
                {
                    "statefulSet": strict(
                        {
                            "spec": strict(
                                {
                                    "template": strict(
                                        # The operator asks for the list, and fills it.
                                        {"spec": strict({"containers": {"maxItems": 0}, "priorityClassName": TEXT})}
                                    )
                                }
                            )
                        }
                    )
                }
            ),
            "rabbitmq": strict({"additionalConfig": TEXT}),
            "affinity": strict(
                {
                    "podAntiAffinity": strict(
                        {
                            "requiredDuringSchedulingIgnoredDuringExecution": some(
                                strict({"topologyKey": TEXT, "labelSelector": LABEL_SELECTOR})
                            )
                        }
                    )
                }
            ),
        }
    ),
)

EXTERNAL_SECRET = resource(
    "external-secrets.io/v1",
    "ExternalSecret",
    strict(
        {
            "refreshInterval": TEXT,
            "secretStoreRef": strict({"kind": word("ClusterSecretStore", "SecretStore"), "name": TEXT}),
            "target": strict({"name": TEXT}, {"template": strict({"type": TEXT, "data": TEXTS})}),
            "data": some(strict({"secretKey": TEXT, "remoteRef": strict({"key": TEXT})})),
        }
    ),
)

RULE = {
    "oneOf": [
        strict({"record": {"type": "string", "pattern": r"^[a-zA-Z_:][a-zA-Z0-9_:]*$"}, "expr": TEXT}),
        strict(
            {
                "alert": TEXT,
                "expr": TEXT,
                "for": {"type": "string", "pattern": r"^\d+(s|m|h)$"},
                "labels": TEXTS,
                "annotations": TEXTS,
            }
        ),
    ]
}

PROMETHEUS_RULE = resource(
    "monitoring.coreos.com/v1",
    "PrometheusRule",
    strict(
        {
            "groups": some(
                strict({"name": TEXT, "interval": {"type": "string", "pattern": r"^\d+(s|m)$"}, "rules": some(RULE)})
            )
        }
    ),
)

POD_MONITOR = resource(
    "monitoring.coreos.com/v1",
    "PodMonitor",
    strict(
        {
            "selector": strict(
                {
                    "matchLabels": TEXTS,
                    "matchExpressions": some(strict({"key": TEXT, "operator": word("In"), "values": some(TEXT)})),
                }
            ),
            "podMetricsEndpoints": some(
                strict(
                    {
                        "port": TEXT,
                        "path": TEXT,
                        "interval": {"type": "string", "pattern": r"^\d+s$"},
                        "scrapeTimeout": {"type": "string", "pattern": r"^\d+s$"},
                        "relabelings": some(strict({"sourceLabels": some(TEXT), "targetLabel": TEXT})),
                    }
                )
            ),
        }
    ),
)

POOL = resource(
    "windlass.dev/v1",
    "Pool",
    strict(
        {
            "queue": {"type": "string", "pattern": r"^[a-z]+\.[a-z0-9-]+$"},
            "threads": {"type": "integer", "minimum": 1},
            "mostPods": {"type": "integer", "minimum": 1},
            "drainSeconds": NUMBER,
            "graceSeconds": NUMBER,
            "egress": word("internet", "none"),
        }
    ),
)

CUSTOM = {
    "ScaledObject": SCALED_OBJECT,
    "TriggerAuthentication": TRIGGER_AUTHENTICATION,
    "Cluster": POSTGRES_CLUSTER,
    "RabbitmqCluster": RABBITMQ_CLUSTER,
    "ExternalSecret": EXTERNAL_SECRET,
    "PrometheusRule": PROMETHEUS_RULE,
    "PodMonitor": POD_MONITOR,
}
