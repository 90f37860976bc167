import { isDeepStrictEqual } from "node:util";
import { type Fields, fieldsOf, isFields } from "../../core/text/json-values.ts";
import { type BoxPlan, commandOf, containerSpec, mountsOf } from "../container-spec.ts";

/** The parts of the engine's report of a container that are checked here. */
export interface Inspected {
  readonly [field: string]: unknown;
  readonly Image?: unknown;
  readonly Config?: unknown;
  readonly HostConfig?: unknown;
  readonly Mounts?: unknown;
  readonly State?: { readonly Pid?: unknown };
}

/**
 * Compares what the engine made of the plan with the plan: one line for each deviation. Fields that the plan does not
 * name must be empty, so that an option of a newer engine is a deviation until it is known here.
 */
export function differences(plan: BoxPlan, inspected: Inspected): readonly string[] {
  const { HostConfig: host, ...config } = fieldsOf(containerSpec(plan));
  const found = fieldsOf(inspected.Config);
  return [
    ...compare("HostConfig", fieldsOf(host), fieldsOf(inspected.HostConfig), HOST_READERS),
    ...compare("Config", config, found, CONFIG_READERS),
    ...environmentLines(config["Env"], found["Env"]),
    ...labelLines(fieldsOf(config["Labels"]), fieldsOf(found["Labels"])),
    ...mountLines(plan, inspected.Mounts),
    ...identityLines(plan, inspected),
  ];
}

type Reader = (value: unknown, planned: unknown) => unknown;

const ignored: Reader = () => undefined;

/** Lists whose order has no meaning for the engine. */
const unordered: Reader = (value) =>
  Array.isArray(value) && value.length > 0
    ? value.map((one) => JSON.stringify(withoutEmpty(one))).toSorted()
    : withoutEmpty(value);

const entries = (list: unknown): readonly (readonly [string, string])[] =>
  (Array.isArray(list) ? list.map(String) : []).map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
  });

const HOST_READERS: Readonly<Record<string, Reader>> = {
  CapDrop: unordered,
  CapAdd: (value, planned) =>
    unordered(Array.isArray(value) ? value.map((one) => String(one).replace(/^CAP_/, "")) : value, planned),
  SecurityOpt: unordered,
  MaskedPaths: unordered,
  ReadonlyPaths: unordered,
  Mounts: unordered,
  Ulimits: unordered,
  // In tables, a key without a value counts.
  Tmpfs: (value) => value ?? undefined,
  Sysctls: (value) => value ?? undefined,
  // If the plan leaves the runtime to the engine, the report names its choice: only runtimes that isolate are accepted.
  Runtime: (value, planned) =>
    planned === undefined && ["runc", "crun", "runsc", "io.containerd.runc.v2"].includes(String(value))
      ? undefined
      : withoutEmpty(value),
  Isolation: (value) => (value === "default" ? undefined : withoutEmpty(value)),
};

const CONFIG_READERS: Readonly<Record<string, Reader>> = {
  Env: ignored,
  Labels: ignored,
  // The image adds its intervals to a health check that never runs.
  Healthcheck: (value) => withoutEmpty(fieldsOf(value)["Test"]),
  // Settings of the image without effect here: no port is published, nothing is built, the end is a kill.
  ExposedPorts: ignored,
  OnBuild: ignored,
  Shell: ignored,
  StopSignal: ignored,
};

function compare(
  title: string,
  wanted: Fields,
  found: Fields,
  readers: Readonly<Record<string, Reader>>,
): readonly string[] {
  const names = [...new Set([...Object.keys(wanted), ...Object.keys(found)])].toSorted();
  return names.flatMap((name) => {
    const read = readers[name] ?? (wanted[name] === undefined ? unlessEmpty : withoutEmpty);
    const [plan, fact] = [read(wanted[name], wanted[name]), read(found[name], wanted[name])];
    if (isDeepStrictEqual(plan, fact)) return [];
    return [`${title}.${name} is ${shown(fact)}, planned ${shown(plan)}`];
  });
}

/** A field that no plan asked for must be empty as it stands: in a table, a key alone has a meaning. */
function unlessEmpty(value: unknown): unknown {
  const filled = isFields(value) ? Object.keys(value).length > 0 : withoutEmpty(value) !== undefined;
  return filled ? value : undefined;
}

/** The value without its empty parts, so that an omitted default equals one that is spelled out. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map((one: unknown) => withoutEmpty(one));
    return items.every((one) => one === undefined) ? undefined : items;
  }
  if (typeof value === "object" && value !== null) {
    const kept = Object.entries(value)
      .map(([name, inner]) => [name, withoutEmpty(inner)] as const)
      .filter(([, inner]) => inner !== undefined)
      .toSorted(([one], [other]) => (one < other ? -1 : 1));
    return kept.length === 0 ? undefined : Object.fromEntries(kept);
  }
  return value === null || value === "" || value === 0 || value === false ? undefined : value;
}

function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text;
}

/** Variables that decide what a program loads or runs before its first line. No image may set them. */
const LOADING_VARIABLES =
  /^(LD_|NODE_(?!VERSION$)|GIT_|BASH_|DYLD_|GCONV_PATH$|GLIBC_TUNABLES$|ENV$|SHELLOPTS$|IFS$|OPENSSL_|DOCKER_)/;

/** The engine adds the image's variables to ours. Those that cannot affect the runner are allowed. */
export function environmentLines(wanted: unknown, found: unknown): readonly string[] {
  const ours = new Map(entries(wanted));
  const theirs = entries(found);
  const missing = [...ours].filter(
    ([name, value]) => !theirs.some((one) => isDeepStrictEqual(one, [name, value])),
  );
  const names = theirs.map(([name]) => name);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  const loading = names.filter((name) => !ours.has(name) && LOADING_VARIABLES.test(name));
  return [
    ...missing.map(([name, value]) => `Config.Env lacks ${name}=${value}`),
    ...twice.map((name) => `Config.Env has ${name} more than once`),
    ...loading.map((name) => `the image sets ${name}, which decides what programs load: use another image`),
  ];
}

/** Containers are looked up by these labels. The image may add labels of its own. */
export const labelLines = (wanted: Fields, found: Fields): readonly string[] =>
  Object.keys(wanted)
    .filter((name) => wanted[name] !== found[name])
    .map((name) => `Config.Labels.${name} is ${shown(found[name])}, planned ${shown(wanted[name])}`);

const mountLine = (type: unknown, from: unknown, to: unknown, writable: boolean): string =>
  `${String(type)} ${shown(from)} at ${shown(to)}, ${writable ? "writable" : "read-only"}`;

/** The mounts as the engine reports them, including volumes that an image declares. */
export function mountLines(plan: BoxPlan, found: unknown): readonly string[] {
  const wanted = mountsOf(plan).map((one) =>
    mountLine(one.Type, one.Source, one.Target, one.ReadOnly !== true),
  );
  const there = (Array.isArray(found) ? found.map(fieldsOf) : []).map((one) =>
    mountLine(
      one["Type"],
      one["Type"] === "volume" ? one["Name"] : one["Source"],
      one["Destination"],
      one["RW"] !== false,
    ),
  );
  return [
    ...wanted.filter((one) => !there.includes(one)).map((one) => `not mounted: ${one}`),
    ...there.filter((one) => !wanted.includes(one)).map((one) => `mounted but not planned: ${one}`),
  ];
}

function identityLines(plan: BoxPlan, inspected: Inspected): readonly string[] {
  const networks = Object.keys(fieldsOf(fieldsOf(inspected["NetworkSettings"])["Networks"]));
  const planned = plan.mode === "danger-full-access" ? "bridge" : "none";
  const command = [inspected["Path"], ...((inspected["Args"] ?? []) as readonly unknown[])];
  const confined: readonly unknown[] = [undefined, "", plan.host.apparmor ? "docker-default" : "unconfined"];
  return [
    ...networks.filter((name) => name !== planned).map((name) => `a network was joined: ${name}`),
    ...(isDeepStrictEqual(command, commandOf(plan)) ? [] : [`it would run ${shown(command)}`]),
    ...(withoutEmpty(inspected["ExecIDs"]) === undefined ? [] : ["something else was started in it"]),
    ...(confined.includes(inspected["AppArmorProfile"])
      ? []
      : [`AppArmorProfile is ${shown(inspected["AppArmorProfile"])}`]),
    ...(plan.image.startsWith("sha256:") && inspected.Image !== plan.image
      ? [`Image is ${shown(inspected.Image)}, planned ${plan.image}`]
      : []),
  ];
}
