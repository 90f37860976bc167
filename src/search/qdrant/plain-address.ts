const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** To be said before a key goes where others may read it on its way; null where none goes, or none can. */
export function unencrypted(url: string, apiKey: string | undefined): string | null {
  if ((apiKey ?? "") === "" || !URL.canParse(url)) return null;
  const { protocol, hostname, host } = new URL(url);
  if (protocol !== "http:" || LOOPBACK.test(hostname)) return null;
  return `the key of Qdrant and the code go to ${host} unencrypted: https would hide them`;
}
