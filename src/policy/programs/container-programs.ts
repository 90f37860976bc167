import { part, valuesOf } from "./argument-roles.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";
import { copied, named as remoteName } from "./ssh-programs.ts";

/**
 * Parts of this machine that a container gets. A container with all files or the engine's socket controls the machine.
 */
const machineAccess = (use: Use): readonly Found[] => [...isolationLoss(use), ...mounts(use)];

/** Options that remove a container's isolation, with the values that do. */
const ISOLATION: Readonly<Record<string, RegExp>> = {
  "--privileged": /^(?!false$)/i,
  "--use-api-socket": /^(?!false$)/i,
  "--cap-add": /^(?:cap_)?(?:all|sys_admin|sys_module|sys_ptrace|sys_rawio|dac_read_search|bpf)$/i,
  "--device": /^\/dev\/(?:sd|nvme|vd|xvd|hd|mem|kmem|port|dm-|mapper|loop|disk)/,
};

function isolationLoss(use: Use): readonly Found[] {
  return use.options.flatMap(({ name, value, span }) => {
    if (!Object.hasOwn(ISOLATION, name) || ISOLATION[name]?.test(value?.value ?? "") !== true) return [];
    const what = value === null ? `${use.program} ${name}` : `${use.program} ${name} ${value.value}`;
    return [{ kind: "privilege", what, span } as const];
  });
}

interface Mount {
  readonly from: Arg;
  readonly readOnly: boolean;
}

function mounts(use: Use): readonly Found[] {
  const all = [
    ...valuesOf(use, "-v", "--volume").flatMap(ofVolume),
    ...valuesOf(use, "--mount").flatMap(ofMount),
  ];
  return all.flatMap(({ from, readOnly }): readonly Found[] => {
    const path = use.place(from);
    if (path !== null && isWhole(path))
      return [{ kind: "privilege", what: `${use.program} with ${path}`, span: from.span }];
    return [{ kind: readOnly ? "read" : "write", path, span: from.span }];
  });
}

/** The whole file system, or what controls the engine. */
const isWhole = (path: string): boolean =>
  WHOLE.has(path) || /\/(?:docker|containerd|podman|crio|buildkitd)\.sock$/.test(path);

const WHOLE = new Set(["/", "/proc", "/sys", "/dev", "/run", "/var/run"]);

/** `/path:/inside:options`; a name without a slash is a volume of the engine. */
function ofVolume(value: Arg): readonly Mount[] {
  const [from = "", ...rest] = value.value.split(":");
  const isName = value.kind === "literal" && !from.includes("/") && !/^\.{1,2}$/.test(from);
  if (rest.length === 0 || isName) return [];
  return [{ from: part(value, from), readOnly: rest.slice(1).some((each) => /(?:^|,)ro(?:,|$)/.test(each)) }];
}

/** `type=bind,source=/path,target=/inside,readonly`. */
function ofMount(value: Arg): readonly Mount[] {
  const fields = value.value.split(",");
  if (!fields.includes("type=bind")) return [];
  const from = fields.find((field) => /^(?:source|src)=/.test(field));
  if (from === undefined) return [];
  const readOnly = fields.some((field) => /^(?:readonly|ro)(?:=true|=1)?$/.test(field));
  return [{ from: part(value, from.slice(from.indexOf("=") + 1)), readOnly }];
}

/** The readers of this file, by the names that rows use. */
export const CONTAINER_READERS: Readonly<Record<string, Reader>> = {
  "container rights": machineAccess,
  "docker cp": (use) => copied(use, (arg) => (arg.value === "-" ? "" : remoteName(arg))),
};
