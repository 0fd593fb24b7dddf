"""What the API server says of pods that are wrong in themselves; the real one says so, too. Pure."""

from dataclasses import dataclass
from typing import Any

_NOT_DECODED = 'Pod in version "v1" cannot be handled as a Pod: '


@dataclass(frozen=True)
class Wrong:
    """Fields of a pod's spec and of its container, and what the server says of them."""

    spec: dict[str, Any]
    container: dict[str, Any]
    server_message: str


WRONG = {
    "unknown field": Wrong(
        {"tolerationz": []}, {}, f'{_NOT_DECODED}strict decoding error: unknown field "spec.tolerationz"'
    ),
    "unknown field of a container": Wrong(
        {}, {"resource": {}}, f'{_NOT_DECODED}strict decoding error: unknown field "spec.containers[0].resource"'
    ),
    "type": Wrong(
        {"tolerations": "all"},
        {},
        f"{_NOT_DECODED}json: cannot unmarshal string into Go struct field PodSpec.spec.tolerations of type "
        "[]v1.Toleration",
    ),
    "type of a value": Wrong(
        {"nodeSelector": {"disk": 5}},
        {},
        f"{_NOT_DECODED}json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type string",
    ),
    "type in a container": Wrong(
        {},
        {"imagePullPolicy": ["Always"]},
        f"{_NOT_DECODED}json: cannot unmarshal array into Go struct field Container.spec.containers.imagePullPolicy of "
        "type v1.PullPolicy",
    ),
    "quantity": Wrong(
        {},
        {"resources": {"limits": {"cpu": "lots"}}},
        f"{_NOT_DECODED}quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    "value": Wrong(
        {"tolerations": [{"key": "a", "operator": "Exist"}]},
        {},
        'Pod "orders-driver" is invalid: spec.tolerations[0].operator: Unsupported value: "Exist": supported values: '
        '"Equal", "Exists"',
    ),
    "missing value": Wrong(
        {"containers": [{"name": "driver", "image": "x"}, {"name": "proxy"}]},
        {},
        'Pod "orders-driver" is invalid: spec.containers[1].image: Required value',
    ),
}
"""By what is wrong with them."""

OVER_THE_LIMIT = (
    'pods "orders-repartition-2" is forbidden: maximum memory usage per Container is 1536Mi, but limit is 2Gi'
)
"""What the LimitRanger says of one that is not wrong in itself."""
