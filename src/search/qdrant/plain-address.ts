const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** The warning for a key that others may read on its way; null if no key is sent, or nobody can read it. */
export function unencrypted(url: string, apiKey: string | undefined): string | null {
  if ((apiKey ?? "") === "" || !URL.canParse(url)) return null;
  const { protocol, hostname, host } = new URL(url);
  if (protocol !== "http:" || LOOPBACK.test(hostname)) return null;
  return `the Qdrant key and your code are sent to ${host} unencrypted; use https`;
}
