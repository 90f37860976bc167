export interface BuildRequest {
  /** The installed package: Dockerfile.sandbox and package.json stand here. */
  readonly root: string;
  readonly cache: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly onLine: (line: string) => void;
}
