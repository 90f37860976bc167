import { EXIT, HarnessError } from "../../core/errors.ts";

const DEFAULT_PORT = "11434";
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
/** Host with port, then path. No credentials, query or fragment: Ollama accepts none. */
const SHAPE = /^([^/\\?#@\s]*)((?:\/[^/\\?#@\s]+)*\/*)$/;

/**
 * The address for connecting to Ollama, without a trailing slash. `baseUrl` is the setting and wins over OLLAMA_HOST,
 * which may have every form that Ollama itself accepts. As in Ollama, a scheme without a port means the scheme's own
 * port; unlike Ollama, which falls back to its default port, a bad port is an error.
 */
export function ollamaAddress(
  env: Readonly<Record<string, string | undefined>>,
  baseUrl: string | null,
): string {
  if (baseUrl !== null) return parsed(baseUrl.trim()) ?? invalidAddress("base_url", baseUrl);
  const host = env["OLLAMA_HOST"] ?? "";
  return parsed(unquoted(host)) ?? invalidAddress("OLLAMA_HOST", host);
}

/** The address is on this machine, so a server can be started there. */
export const isLoopback = (address: string): boolean =>
  URL.canParse(address) && LOOPBACK.test(new URL(address).hostname);

const unquoted = (text: string): string =>
  text
    .trim()
    .replace(/^["']+|["']+$/g, "")
    .trim();

function parsed(text: string): string | undefined {
  const [scheme, rest] = splitScheme(text);
  const [whole, authority = "", path = ""] = SHAPE.exec(rest) ?? [];
  const place = splitAuthority(authority);
  if (whole === undefined || place === undefined) return undefined;
  if (scheme === undefined)
    return normal(`http://${dialled(place.host)}:${place.port || DEFAULT_PORT}${apiRoot(path)}`, place.host);
  if (!/^https?$/.test(scheme) || authority === "") return undefined;
  return normal(`${scheme}://${dialled(place.host)}:${place.port}${apiRoot(path)}`, place.host);
}

function splitScheme(text: string): readonly [scheme: string | undefined, rest: string] {
  const cut = text.indexOf("://");
  return cut === -1 ? [undefined, text] : [text.slice(0, cut).toLowerCase(), text.slice(cut + 3)];
}

function normal(address: string, written: string): string | undefined {
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (url.port === "0" || guessedNumber(url.hostname, written)) return undefined;
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, "")}`;
}

/** Host and port of `h`, `h:p`, `:p`, `[v6]`, `[v6]:p` and the bare `v6`. */
function splitAuthority(authority: string): { readonly host: string; readonly port: string } | undefined {
  if (/^[^[\]]*:[^[\]]*:[^[\]]*$/.test(authority)) return { host: `[${authority}]`, port: "" };
  const [whole, host = "", port = ""] = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d*))?$/.exec(authority) ?? [];
  return whole === undefined ? undefined : { host, port };
}

/** "Every interface" is an address to listen on; for connecting it means this machine. */
function dialled(host: string): string {
  if (host === "" || host === "0.0.0.0") return "127.0.0.1";
  return /^\[[0:]+\]$/.test(host) ? "[::1]" : host;
}

/** A `/v1` left over from an OpenAI-style setting means the same server. */
const apiRoot = (path: string): string => (/^\/(?:v1|api)\/*$/.test(path) ? "" : path);

/** URL parsers read `11434` as the host 0.0.44.170, which nobody means. */
const guessedNumber = (hostname: string, written: string): boolean =>
  /^[\d.]+$/.test(hostname) && hostname !== dialled(written);

function invalidAddress(origin: string, value: string): never {
  const shown = value.includes("@") ? "the value (not shown, it may hold a password)" : JSON.stringify(value);
  throw new HarnessError(
    EXIT.usage,
    `${origin}: ${shown} is not an address of an Ollama server; expected host, host:port or http://host:port`,
    origin === "base_url"
      ? `harness config set base_url http://127.0.0.1:${DEFAULT_PORT}`
      : "unset OLLAMA_HOST",
  );
}
