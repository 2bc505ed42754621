"""Metric names that dashboards, alerts and other processes rely on."""

# vLLM's own names for what vLLM has, so that existing dashboards work on either backend.
KV_CACHE_USAGE = "vllm:kv_cache_usage_perc"
REQUESTS_RUNNING = "vllm:num_requests_running"
REQUESTS_WAITING = "vllm:num_requests_waiting"
TTFT_SECONDS = "vllm:time_to_first_token_seconds"
ITL_SECONDS = "vllm:inter_token_latency_seconds"
E2E_SECONDS = "vllm:e2e_request_latency_seconds"
PROMPT_TOKENS = "vllm:prompt_tokens"  # exposed with the suffix _total
GENERATION_TOKENS = "vllm:generation_tokens"

ENGINE_ABORTS = "headwater_engine_aborts"  # exposed with the suffix _total; label cause
ENGINE_PHASE = "headwater_engine_phase"
ENGINE_STEPS = "headwater_engine_steps"

OPERATOR_RECONCILE_SECONDS = "headwater_reconcile_duration_seconds"
OPERATOR_API_CALLS = "headwater_api_calls"
OPERATOR_GROUPS = "headwater_groups"  # labels namespace, pool, role, phase
OPERATOR_PROMOTIONS = "headwater_promotions"
OPERATOR_REPLACEMENTS = "headwater_replacements"
OPERATOR_SIGNAL_AGE_SECONDS = "headwater_signal_age_seconds"
