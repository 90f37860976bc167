interface ExpectedRefusal {
  readonly kind: string;
  readonly passing?: true;
  readonly refusesTools?: true;
  readonly raw?: string;
}

/** Bodies as servers really write them. */
export const BODIES: readonly (readonly [string, number, unknown, ExpectedRefusal])[] = [
  [
    "OpenAI: a wrong key",
    401,
    { error: { message: "Incorrect API key", code: "invalid_api_key" } },
    { kind: "unauthorised" },
  ],
  [
    "OpenAI: no such model",
    404,
    { error: { message: "The model `x` does not exist", code: "model_not_found" } },
    { kind: "no_model" },
  ],
  [
    "OpenAI: too fast",
    429,
    { error: { message: "Rate limit reached", code: "rate_limit_exceeded" } },
    { kind: "rate_limited", passing: true },
  ],
  [
    "OpenAI: no money",
    429,
    { error: { message: "You exceeded your current quota", code: "insufficient_quota" } },
    { kind: "rate_limited" },
  ],
  [
    "Anthropic: no money",
    400,
    {
      type: "error",
      error: {
        type: "invalid_request_error",
        message: "Your credit balance is too low to access the Anthropic API.",
      },
    },
    { kind: "rate_limited" },
  ],
  [
    "OpenAI: too long",
    400,
    { error: { message: "Your input exceeds", code: "context_length_exceeded" } },
    { kind: "too_long" },
  ],
  [
    "OpenAI: filtered",
    400,
    { error: { message: "The response was filtered", code: "content_filter" } },
    { kind: "refused" },
  ],
  ["a bad request", 400, { error: { message: "messages: expected a list" } }, { kind: "server" }],
  [
    "vLLM: too long",
    400,
    {
      object: "error",
      message: "This model's maximum context length is 4096 tokens.",
      type: "BadRequestError",
      code: 400,
    },
    { kind: "too_long" },
  ],
  [
    "vLLM: no model",
    404,
    { object: "error", message: "The model `x` does not exist.", type: "NotFoundError", code: 404 },
    { kind: "no_model" },
  ],
  [
    "vLLM: no parser of calls",
    400,
    {
      object: "error",
      message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    },
    { kind: "server", refusesTools: true },
  ],
  [
    "llama.cpp: too long",
    400,
    {
      error: {
        code: 400,
        message: "the request exceeds the available context size",
        type: "exceed_context_size_error",
      },
    },
    { kind: "too_long" },
  ],
  [
    "llama.cpp: still loading",
    503,
    { error: { code: 503, message: "Loading model", type: "unavailable_error" } },
    { kind: "server", passing: true },
  ],
  [
    "llama.cpp: no templates",
    500,
    { error: { code: 500, message: "tools param requires --jinja flag", type: "server_error" } },
    { kind: "server", refusesTools: true },
  ],
  [
    "llama.cpp: tools not known",
    500,
    { error: { code: 500, message: "Unsupported param: tools", type: "server_error" } },
    { kind: "server", refusesTools: true },
  ],
  [
    "llama.cpp: a template that fails",
    500,
    { error: { code: 500, message: "Jinja Exception: Conversation roles must alternate" } },
    { kind: "server", refusesTools: true },
  ],
  [
    "llama.cpp: a reply that it cannot read",
    500,
    { error: { code: 500, message: "Failed to parse input at pos 12: I look.\n<tool_call>{" } },
    { kind: "garbled", passing: true, raw: "I look.\n<tool_call>{" },
  ],
  [
    "Groq: a reply that it cannot read",
    400,
    {
      error: {
        message: "Failed to call a function.",
        code: "tool_use_failed",
        failed_generation: "<function=x>",
      },
    },
    { kind: "garbled", passing: true, raw: "<function=x>" },
  ],
  [
    "LM Studio: words only",
    400,
    { error: "The model has crashed without additional information." },
    { kind: "server" },
  ],
  [
    "LM Studio: nothing loaded",
    404,
    { error: { message: "No models loaded. Please load a model in the developer page" } },
    { kind: "no_model" },
  ],
  [
    "LM Studio: too long",
    400,
    {
      error:
        "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens",
    },
    { kind: "too_long" },
  ],
  [
    "LM Studio: a template that fails",
    400,
    { error: "Error rendering prompt with jinja template: No user query found" },
    { kind: "server", refusesTools: true },
  ],
  [
    "Ollama: no tools",
    400,
    { error: { message: "registry.ollama.ai/library/gemma3 does not support tools", type: "api_error" } },
    { kind: "server", refusesTools: true },
  ],
  [
    "Ollama: out of memory",
    500,
    { error: "model requires more system memory (9.1 GiB) than is available (7.7 GiB)" },
    { kind: "out_of_memory" },
  ],
  [
    "CUDA: out of memory",
    500,
    { error: { message: "CUDA out of memory. Tried to allocate 2 GiB" } },
    { kind: "out_of_memory" },
  ],
  [
    "OpenRouter: no credit",
    402,
    { error: { code: 402, message: "Insufficient credits" } },
    { kind: "rate_limited" },
  ],
  [
    "OpenRouter: no tools",
    404,
    { error: { code: 404, message: "No endpoints found that support tool use." } },
    { kind: "server", refusesTools: true },
  ],
  [
    "OpenRouter: no model",
    400,
    { error: { code: 400, message: "x/y is not a valid model ID" } },
    { kind: "no_model" },
  ],
  [
    "OpenRouter: moderation",
    403,
    { error: { code: 403, message: "Input was flagged", metadata: { reasons: ["x"] } } },
    { kind: "refused" },
  ],
  [
    "a router without its server",
    502,
    { error: { code: 502, message: "Provider returned error" } },
    { kind: "server", passing: true },
  ],
  [
    "Google behind a router",
    429,
    [{ error: { code: 429, message: "Resource exhausted" } }],
    { kind: "rate_limited", passing: true },
  ],
  [
    "FastAPI: a field too many",
    422,
    { detail: [{ type: "extra_forbidden", loc: ["body", "tools"], msg: "Extra inputs are not permitted" }] },
    { kind: "server", refusesTools: true },
  ],
  ["nothing there", 404, { detail: "Not Found" }, { kind: "unreachable" }],
  [
    "Anthropic: busy",
    529,
    { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
    { kind: "server", passing: true },
  ],
  [
    "Anthropic: no model",
    404,
    { type: "error", error: { type: "not_found_error", message: "model: claude-x" } },
    { kind: "no_model" },
  ],
  [
    "Anthropic: too long",
    400,
    {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
    },
    { kind: "too_long" },
  ],
  [
    "Anthropic: too many bytes",
    413,
    { type: "error", error: { type: "request_too_large", message: "Request exceeds the maximum size" } },
    { kind: "too_long" },
  ],
  [
    "an error with status 200: busy",
    200,
    { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
    { kind: "server", passing: true },
  ],
  [
    "an error with status 200: too fast",
    200,
    { error: { code: 429, message: "slow down" } },
    { kind: "rate_limited", passing: true },
  ],
  ["an error with status 200: text", 200, { error: "boom" }, { kind: "server", passing: true }],
  ["a server without this function", 501, { error: "not implemented" }, { kind: "server" }],
];
