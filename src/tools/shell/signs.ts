import type { Cause } from "../../core/tool.ts";

interface Sign {
  readonly cause: Cause;
  readonly reason: string;
  readonly form: RegExp;
}

/**
 * What programs say when they meet a wall or a limit. A reading of words that the program chose: it explains a failure
 * and decides nothing. The first that fits counts.
 */
const SIGNS: readonly Sign[] = [
  {
    cause: "disk",
    reason: "no space is left where it wrote",
    form: /No space left on device|\bENOSPC\b|Disk quota exceeded|\bEDQUOT\b|File too large|\bEFBIG\b/,
  },
  {
    cause: "pids",
    reason: "the box's limit on processes was met",
    form: /fork: (?:retry: )?Resource temporarily unavailable|fork(?:\(\))? failed|can't start new thread|spawn [^\n]{0,200}EAGAIN|pthread_create failed|unable to create native thread/,
  },
  {
    cause: "memory",
    reason: "no memory was left for it",
    form: /Cannot allocate memory|\bENOMEM\b|JavaScript heap out of memory|java\.lang\.OutOfMemoryError|fatal error: runtime: out of memory|memory allocation of \d+ bytes failed|^MemoryError|std::bad_alloc|virtual memory exhausted/m,
  },
  {
    cause: "network",
    reason: "the box has no network, or was not granted that host",
    form: /getaddrinfo (?:EAI_AGAIN|ENOTFOUND)|\bEAI_AGAIN\b|\bENETUNREACH\b|Could not resolve (?:host|hostname|proxy)\b|Couldn't resolve host|Temporary failure in name resolution|Temporary failure resolving|Name or service not known|Network is unreachable|network is unreachable|nodename nor servname|unable to resolve host address|failed to lookup address|java\.net\.UnknownHostException|dial tcp: lookup [^\n]{0,200}: |No address associated with hostname|name resolution failed/,
  },
  {
    cause: "filesystem",
    reason: "that place is read-only in the box",
    form: /Read-only file system|\bEROFS\b|read-only file system/,
  },
];

/** Where the output's end shows it; the rest is not looked at. */
const LOOKED_AT = 16 * 1024;

export function signOf(output: string): { readonly cause: Cause; readonly reason: string } | undefined {
  const end = output.slice(-LOOKED_AT);
  const sign = SIGNS.find(({ form }) => form.test(end));
  return sign === undefined ? undefined : { cause: sign.cause, reason: sign.reason };
}
