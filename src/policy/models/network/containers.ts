import type { Model } from "../model.ts";
import { copied, named as remoteName } from "./copies.ts";
import { contained } from "./mounts.ts";
import { manages, named, runsElsewhere } from "./parts.ts";

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
