"""Environment variables by which the operator configures an engine pod.

All values are text; durations are seconds as decimal numbers, booleans ``true`` or ``false``. The engine's
settings model reads exactly these (prefix ``HEADWATER_``), so a name here is a promise between two images
that may differ in version.
"""

PREFIX = "HEADWATER_"

BACKEND = PREFIX + "BACKEND"  # vllm | sim
MODEL_NAME = PREFIX + "MODEL_NAME"  # the name that clients send
MODEL_PATH = PREFIX + "MODEL_PATH"  # directory, or a hub repository; empty for sim
MODEL_REVISION = PREFIX + "MODEL_REVISION"
TENSOR_PARALLEL_SIZE = PREFIX + "TENSOR_PARALLEL_SIZE"
PIPELINE_PARALLEL_SIZE = PREFIX + "PIPELINE_PARALLEL_SIZE"
MAX_MODEL_LEN = PREFIX + "MAX_MODEL_LEN"
BLOCK_SIZE = PREFIX + "BLOCK_SIZE"
MAX_NUM_BATCHED_TOKENS = PREFIX + "MAX_NUM_BATCHED_TOKENS"
PREFIX_CACHING = PREFIX + "PREFIX_CACHING"
EXTRA_ARGS = PREFIX + "EXTRA_ARGS"  # JSON object of further engine arguments, text to text
SIM_PROFILE = PREFIX + "SIM_PROFILE"
SIM_TIME_SCALE = PREFIX + "SIM_TIME_SCALE"
HTTP_PORT = PREFIX + "HTTP_PORT"
ADMIN_PORT = PREFIX + "ADMIN_PORT"
ADMIN_TOKEN_SHA256 = PREFIX + "ADMIN_TOKEN_SHA256"  # hex digest; the token itself never enters the pod spec
DRAIN_TIMEOUT_SECONDS = PREFIX + "DRAIN_TIMEOUT_SECONDS"
ENDPOINT_SETTLE_SECONDS = PREFIX + "ENDPOINT_SETTLE_SECONDS"
STARTUP_DEADLINE_SECONDS = PREFIX + "STARTUP_DEADLINE_SECONDS"
HEALTH_INTERVAL_SECONDS = PREFIX + "HEALTH_INTERVAL_SECONDS"
HEALTH_FAILURE_THRESHOLD = PREFIX + "HEALTH_FAILURE_THRESHOLD"
SLO_TTFT_SECONDS = PREFIX + "SLO_TTFT_SECONDS"  # histogram edge
SLO_ITL_SECONDS = PREFIX + "SLO_ITL_SECONDS"
GROUP = PREFIX + "GROUP"
POOL = PREFIX + "POOL"
POD_NAME = PREFIX + "POD_NAME"
SIM_SCRIPTS = PREFIX + "SIM_SCRIPTS"  # 1: a request body may carry headwater_script (sim only)
LOG_LEVEL = PREFIX + "LOG_LEVEL"
MAX_WAITING = PREFIX + "MAX_WAITING"  # requests without a first token, beyond which new ones get 429
KEEP_ALIVE_SECONDS = PREFIX + "KEEP_ALIVE_SECONDS"  # silence on a stream, after which a comment is sent
CLIENT_STALL_SECONDS = PREFIX + "CLIENT_STALL_SECONDS"  # a client that takes nothing for so long is cut off
STREAM_STALL_SECONDS = PREFIX + "STREAM_STALL_SECONDS"  # a stream without a token for so long ends in band
