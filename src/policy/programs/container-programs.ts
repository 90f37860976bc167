import { manages, named, part, runsElsewhere, valuesOf } from "./network-arguments.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";
import { copied, named as remoteName } from "./ssh-programs.ts";

/** What of this machine a container gets: with all of its files or the engine's own socket, it gets everything. */
const contained = (use: Use): readonly Found[] => [...rights(use), ...mounts(use)];

/** Switches that take a container's walls away, and the values with which they do. */
const WALLS: Readonly<Record<string, RegExp>> = {
  "--privileged": /^(?!false$)/i,
  "--use-api-socket": /^(?!false$)/i,
  "--cap-add": /^(?:cap_)?(?:all|sys_admin|sys_module|sys_ptrace|sys_rawio|dac_read_search|bpf)$/i,
  "--device": /^\/dev\/(?:sd|nvme|vd|xvd|hd|mem|kmem|port|dm-|mapper|loop|disk)/,
};

function rights(use: Use): readonly Found[] {
  return use.options.flatMap(({ name, value, span }) => {
    if (!Object.hasOwn(WALLS, name) || WALLS[name]?.test(value?.value ?? "") !== true) return [];
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

/** Everything, or what commands the engine. */
const isWhole = (path: string): boolean =>
  WHOLE.has(path) || /\/(?:docker|containerd|podman|crio|buildkitd)\.sock$/.test(path);

const WHOLE = new Set(["/", "/proc", "/sys", "/dev", "/run", "/var/run"]);

/** `/path:/inside:options`; a name without a slash is a volume of the engine's own. */
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

/** What a container gets, and how it runs. Mounts and rights are looked at apart. */
const RUN = `-diPqtT -a: -c: -e: -h: -l: -m: -p: -u: -v: -w: --detach --disable-content-trust --init --interactive
  --no-healthcheck --oom-kill-disable --privileged=? --publish-all --quiet --read-only --rm --sig-proxy=? --tty
  --use-api-socket=? --replace --add-host= --attach= --blkio-weight= --blkio-weight-device= --cap-add= --cap-drop=
  --cgroup-parent= --cgroupns= --cidfile=write --cpu-period= --cpu-quota= --cpu-rt-period= --cpu-rt-runtime=
  --cpu-shares= --cpus= --cpuset-cpus= --cpuset-mems= --detach-keys= --device= --device-cgroup-rule=
  --device-read-bps= --device-read-iops= --device-write-bps= --device-write-iops= --dns= --dns-option= --dns-search=
  --domainname= --entrypoint= --env= --env-file=read --expose= --gpus= --group-add= --health-cmd= --health-interval=
  --health-retries= --health-start-period= --health-timeout= --hostname= --ip= --ip6= --ipc= --isolation=
  --kernel-memory= --label= --label-file=read --link= --link-local-ip= --log-driver= --log-opt= --mac-address=
  --memory= --memory-reservation= --memory-swap= --memory-swappiness= --mount= --name= --network= --net=
  --network-alias= --oom-score-adj= --pid= --pids-limit= --platform= --publish= --pull= --restart= --runtime=
  --security-opt= --shm-size= --stop-signal= --stop-timeout= --storage-opt= --sysctl= --tmpfs= --ulimit= --user=
  --userns= --uts= --volume= --volume-driver= --volumes-from= --workdir= --arch= --pod= --systemd= --tz=`;

/** An image, then what runs in it: that is another world's command. */
const STARTS: Model = {
  options: RUN,
  operands: "data*",
  strict: true,
  tells: "--help",
  fixed: ["process", "network"],
  also: contained,
};

const MANAGES = manages("--help");
const FETCHES = runsElsewhere("--help");

const LOCAL = `ps images logs inspect stop start restart kill pause unpause wait rm rmi rename update top stats port diff events
  info history tag attach stack swarm node service secret config checkpoint context system network volume trust
  scout scan debug sandbox machine pod generate healthcheck mount unmount unshare untag init quadlet secret artifact farm`;

const REACHING = `pull push login logout search build buildx builder plugin manifest import load compose-pull play kube auto-update`;

/** A container or an image as files of this side. */
const SAVES: Model = {
  options: "-o:write --output=write -q -m -l --format= --compress --platform=",
  operands: "data*",
  fixed: ["process"],
  tells: "--help",
};

const EXECUTES: Model = {
  options: `-dit -e: -u: -w: -l --detach --detach-keys= --env= --env-file=read --interactive --latest --privileged=? --tty
    --user= --workdir=`,
  operands: "data*",
  strict: true,
  fixed: ["process"],
  tells: "--help",
  also: contained,
};

const COPIES: Model = {
  options: "-aLq --archive --follow-link --quiet --overwrite --pause",
  operands: "data*",
  fixed: ["process"],
  tells: "--help",
  also: (use) => copied(use, (arg) => (arg.value === "-" ? "" : remoteName(arg))),
};

const COMPOSE: Model = {
  options: `-f:read -p: --file=read --project-name= --project-directory=in --profile= --env-file=read --ansi= --progress=
    --parallel= --compatibility --dry-run --all-resources -v --verbose`,
  tells: "version --version --help",
  commands: {
    version: { options: "-f: --format= --short", operands: "" },
    ...named(
      `up down start stop restart pause unpause ps logs top events images port kill rm exec attach config convert create wait
      ls cp stats volumes scale watch export commit viz bridge alpha`,
      MANAGES,
    ),
    ...named("run build pull push publish", FETCHES),
  },
};

const ENGINE: Model = {
  options: `-D -H:host -c: -l: --host=host --url=host --debug --context= --connection= --log-level= --tls --tlsverify --remote
    --tlscacert=read --tlscert=read --tlskey=read --config=loads --identity=read --namespace= --address=write
    --storage-driver= --root= --runroot= --cgroup-manager= --events-backend= --runtime=loads --hooks-dir=loads
    --conmon=loads --module=loads --network-cmd-path=loads -n: -a:write`,
  tells: "--version -v --help -h help",
  commands: {
    ...named(LOCAL, MANAGES),
    ...named(REACHING, FETCHES),
    ...named("run create", STARTS),
    exec: EXECUTES,
    ...named("save export commit", SAVES),
    cp: COPIES,
    /** Asks the daemon. */
    version: MANAGES,
    help: { operands: "data*" },
    container: {
      commands: {
        ...named(`${LOCAL} ls list prune exists`, MANAGES),
        ...named("run create", STARTS),
        ...named("export commit", SAVES),
        cp: COPIES,
        exec: EXECUTES,
      },
    },
    image: {
      commands: {
        ...named("ls list inspect rm prune tag history tree exists", MANAGES),
        ...named("build pull push import load", FETCHES),
        save: SAVES,
      },
    },
    compose: COMPOSE,
  },
};

export const CONTAINERS: Readonly<Record<string, Model>> = {
  docker: ENGINE,
  podman: ENGINE,
  nerdctl: ENGINE,
  "docker-compose": COMPOSE,
  "podman-compose": COMPOSE,
};
