/** One line of /proc/self/mountinfo. */
export interface MountPoint {
  readonly path: string;
  /** The part of the file system that is mounted. */
  readonly root: string;
  readonly type: string;
  readonly options: ReadonlySet<string>;
  readonly superOptions: readonly string[];
  /** Whether mounts below it propagate to the host. */
  readonly shared: boolean;
}

/** Lines that cannot be parsed are returned as they are. */
export function readMountinfo(text: string): {
  readonly points: readonly MountPoint[];
  readonly strange: readonly string[];
} {
  const lines = text.split("\n").filter((line) => line !== "");
  const points = lines.map(readLine);
  return {
    points: points.filter((point) => point !== undefined),
    strange: lines.filter((_, index) => points[index] === undefined),
  };
}

function readLine(line: string): MountPoint | undefined {
  const [left = "", right] = line.split(" - ", 2);
  const [, , , root, path, options, ...optional] = left.split(" ");
  const [type, , superOptions = ""] = right?.split(" ") ?? [];
  if (root === undefined || path === undefined || options === undefined || type === undefined)
    return undefined;
  return {
    path: unescaped(path),
    root: unescaped(root),
    type,
    options: new Set(options.split(",")),
    superOptions: superOptions.split(","),
    shared: optional.some((field) => field.startsWith("shared:")),
  };
}

/** The kernel writes space, tab, newline and backslash as octal numbers; every other byte as it is. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
