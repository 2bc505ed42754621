"""Names under ``headwater.dev`` that more than one process, or a user, reads."""

API_GROUP = "headwater.dev"
API_VERSION = "v1alpha1"

LABEL_POOL = f"{API_GROUP}/pool"
LABEL_GROUP = f"{API_GROUP}/group"
LABEL_REVISION = f"{API_GROUP}/revision"
LABEL_ROLE = f"{API_GROUP}/role"
LABEL_RANK = f"{API_GROUP}/rank"

ANNOTATION_DRAINING_SINCE = f"{API_GROUP}/draining-since"
"""On a ReplicaGroup: RFC 3339 time at which its drain began. Survives an operator restart."""
ANNOTATION_QUARANTINED_SINCE = f"{API_GROUP}/quarantined-since"
ANNOTATION_ROLE_REASON = f"{API_GROUP}/role-reason"
"""On a ReplicaGroup: the Reason of its last role change."""

FIELD_MANAGER = "headwater"
STATUS_FIELD_MANAGER = "headwater-status"

# Group names are <pool>-<revision6>-<random5> and pod names add -<rank>: with 40 characters for the
# pool all of them stay valid label values and DNS labels.
MAX_POOL_NAME_LENGTH = 40
