import { hostsOf } from "./argument-roles.ts";
import { CONTAINERS } from "./container-programs.ts";
import { CURL, downloads, WGET } from "./curl-wget.ts";
import { DATABASES } from "./database-programs.ts";
import {
  given,
  manages,
  named,
  networkTo,
  part,
  reachesAnyway,
  reading,
  remote,
  runsElsewhere,
  telling,
  valuesOf,
  writing,
} from "./network-arguments.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";
import { LINKS, OPENSSL, PROBES, SOCKETS } from "./socket-programs.ts";
import {
  copied,
  named as elsewhere,
  emptied,
  KEYS,
  named as podPart,
  RSYNC,
  SSH_CLIENTS,
} from "./ssh-programs.ts";

const PLANS = `terragrunt cdk cdktf cdk8s sls serverless sam chalice zappa ansible ansible-galaxy
  ansible-vault ansible-pull ansible-console ansible-inventory ansible-doc ansible-config ansible-test ansible-builder
  ansible-navigator molecule salt salt-call salt-ssh salt-run puppet puppet-agent chef-client chef-solo knife cap
  capistrano pyinfra bolt cfn copilot ecs-cli eb crossplane atlantis infracost spacectl
  scalr driftctl terraformer nixops colmena deploy-rs kamal dokku`;

const PROVISIONING: Readonly<Record<string, Model>> = {
  ...named(PLANS, runsElsewhere()),
  ...named("pulumi packer", runsElsewhere("--version version --help")),
  vault: remote("--version -v version --help"),
  ...named("doppler infisical chamber teller envchain", remote()),
};

/** Images and containers without an engine of their own, or the parts below one. */
const IMAGES = `buildah skopeo kaniko img buildctl buildkitd crane oras cosign notation dive earthly pack
  crictl ctr containerd dockerd colima lima limactl finch apptainer singularity enroot charliecloud toolbox distrobox
  flatpak-spawn lxc lxc-attach lxc-create lxc-start lxc-stop lxc-execute lxd incus multipass orb rancher runc crun youki
  kata-runtime umoci systemd-nspawn machinectl portablectl act dagger devcontainer`;

/** Whole machines. */
const MACHINES = `virsh virt-install virt-manager virt-clone virt-viewer qemu-img qemu-nbd qemu-io vagrant VBoxManage vboxmanage
  VBoxHeadless vmrun prlctl tart firecracker cloud-hypervisor xl xe qm pct cloud-init`;

const QEMU = `qemu-system-x86_64 qemu-system-i386 qemu-system-aarch64 qemu-system-arm qemu-system-riscv64 qemu-system-ppc64
  qemu-system-s390x qemu-kvm kvm qemu-x86_64 qemu-aarch64 qemu-arm qemu-i386 qemu-riscv64 qemu-x86_64-static
  qemu-aarch64-static qemu-arm-static`;

/** Programs that wait for others to connect. */
const SERVERS = `lighttpd traefik envoy varnishd squid tinyproxy 
  valkey-server mongod mongos postgres pg_ctl pg_ctlcluster initdb mysqld mysqld_safe mariadbd memcached rabbitmq-server
  rabbitmqctl kafka-server-start zookeeper-server-start elasticsearch opensearch meilisearch typesense etcd minio
  prometheus grafana-server influxd clickhouse-server cockroach neo4j named dnsmasq unbound coredns sshd dropbear
  vsftpd smbd nmbd nfsd rpcbind slapd postfix exim4 dovecot squid3 mosquitto nats-server verdaccio
  json-server browser-sync supervisord supervisorctl circusd`;

const MACHINES_AND_SERVERS: Readonly<Record<string, Model>> = {
  ...named(IMAGES, runsElsewhere()),
  ...named(MACHINES, manages()),
  ...named(QEMU, runsElsewhere("--version -version --help")),
  ...named(
    "nginx apache2 apache2ctl apachectl httpd haproxy php-fpm",
    runsElsewhere("--version -v -V --help -h"),
  ),
  "redis-server": runsElsewhere("--version -v --help -h"),
  caddy: runsElsewhere("--version version --help help"),
  ...named(SERVERS, runsElsewhere()),
};

/** Settings of a cluster name helper programs that log in. */
const GLOBALS = `-n: -s:host -v: -A --namespace= --context= --cluster= --user= --token= --server=host --as= --as-group= --as-uid=
  --request-timeout= --cache-dir=target --certificate-authority=read --client-certificate=read --client-key=read
  --insecure-skip-tls-verify=? --match-server-version=? --tls-server-name= --profile= --profile-output=write
  --warnings-as-errors=? --log-flush-frequency= --vmodule= --disable-compression=? --kubeconfig=loads`;

/** The client tells its own version; without `--client` it asks the server as well. */
const VERSION: Model = {
  options: "--client=? --short=? -o: --output= --output-version=",
  operands: "",
  also: (use) => {
    const value = use.options.find(({ name }) => name === "--client")?.value?.value;
    return given(use, "--client") && (value ?? "true") === "true" ? [] : [{ kind: "network", hosts: [] }];
  },
};

/** What is sent to the cluster: files, folders or addresses. */
const SENDS: Model = {
  options: `-f: -k:loads -R -l: -o: --filename= --kustomize=loads --recursive=? --dry-run=? --server-side=? --force=? --force-conflicts=?
    --prune=? --wait=? --timeout= --validate=? --field-manager= --grace-period= --cascade=? --all=? --output= --selector=
    --namespace= -n: -A --all-namespaces=? --context= --kubeconfig=loads --record=? --overwrite=? --ignore-not-found=? --now=?
    --save-config=? --edit=? --template= --show-managed-fields=? --prune-allowlist= --subresource= --type= -p: --patch=
    --patch-file=read --local=? --raw= --field-selector= --image= --replicas= --from-file=read --from-env-file=read
    --from-literal= --cert=read --key=read`,
  operands: "data*",
  tells: "--help -h",
  fixed: ["network"],
  also: sent,
};

function sent(use: Use): readonly Found[] {
  return valuesOf(use, "-f", "--filename")
    .filter(({ value }) => value !== "-")
    .map((file) =>
      file.value.includes("://") ? networkTo(file) : { kind: "read", path: use.place(file), span: file.span },
    );
}

const COPIES: Model = {
  options: "-c: --container= --no-preserve=? --retries= -n: --namespace= --context= --kubeconfig=loads",
  operands: "data*",
  tells: "--help -h",
  fixed: ["network"],
  also: (use) => copied(use, podPart),
};

const ASKS = `get describe explain logs top events api-resources api-versions cluster-info diff auth wait rollout scale autoscale
  expose run exec attach port-forward proxy debug cordon uncordon drain taint label annotate certificate config
  plugin options kustomize`;

const KUBECTL: Model = {
  options: GLOBALS,
  tells: "--help -h help",
  commands: {
    version: VERSION,
    ...named(ASKS, remote("--help -h")),
    completion: manages("--help -h"),
    ...named("apply create replace delete patch edit set", SENDS),
    cp: COPIES,
  },
};

const HELM_VALUES = "-f:read --values=read --set= --set-string= --set-json= -n: --namespace= --kube-version=";

const HELM: Model = {
  options: `-n: --namespace= --debug --kube-context= --kube-apiserver=host --kubeconfig=loads --registry-config=read
    --repository-cache=target --repository-config=loads --burst-limit= --qps=`,
  tells: "--help -h help",
  commands: {
    version: telling("--short --client -c --template="),
    completion: manages("--help -h"),
    lint: {
      options: `${HELM_VALUES} --strict --quiet --with-subcharts --skip-schema-validation`,
      operands: "read*|.",
      tells: "--help -h",
      also: (use) =>
        valuesOf(use, "-f", "--values")
          .filter(({ value }) => value.includes("://"))
          .map(networkTo),
    },
    ...named(
      `template list ls install upgrade uninstall delete rollback status history get show inspect search repo pull fetch push
      dependency dep package create env plugin registry test verify diff secrets`,
      runsElsewhere("--help -h"),
    ),
  },
};

const OTHERS = `k0s kubeadm kubelet kubectx kubens kubeseal okteto garden telepresence
  microk8s minishift crc oc rosa kops kubespray istioctl linkerd cilium hubble flux argocd argo tkn velero calicoctl
  kn kubescape popeye helmfile helmsman krew kubectl-krew clusterctl rke rke2 etcdctl
  waypoint serf dapr knative kapp ytt vcluster werf draft acorn`;

const CLUSTERS: Readonly<Record<string, Model>> = {
  kubectl: KUBECTL,
  helm: HELM,
  ...named(
    "minikube kind k9s k3s k3d kustomize skaffold stern tilt devspace kompose eksctl talosctl consul nomad boundary",
    runsElsewhere("--version version --help help"),
  ),
  ...named(OTHERS, runsElsewhere()),
};

/** Programs for clouds, hosting and services: each word of them is a request. */
const SERVICES = `bq azd func cbt oci ibmcloud aliyun tccli hcloud scw linode-cli vultr-cli exo ovh openstack
  nova cloudflare firebase railway render amplify sst
  surge gh-pages convex planetscale pscale turso neonctl neon upstash appwrite nhost hasura expo-cli eas 
  shopify stripe twilio auth0 okta clerk sentry-cli datadog-ci newrelic honeycomb circleci travis buildkite-agent drone
  jenkins-cli gitlab-runner actions-runner codecov coveralls jira acli linear slack slackcat discord telegram-send ntfy
  huggingface-cli hf ollama llm aichat sgpt openai anthropic replicate modal runpodctl kaggle wandb mlflow cml
  spotify zoom obs-cli saml2aws aws-vault aws-sso aws-okta awslocal localstack gimme-aws-creds
  jf jfrog artifactory nexus-cli conjur tsh tctl teleport bitwarden lpass 1password dropbox onedrive gdrive megacmd
  mega-put mega-get gupload transfer croc wormhole magic-wormhole ffsend syncthing ipfs bittorrent-cli
  localtunnel lt bore frpc frps chisel inlets gost v2ray xray ss-local sslocal tor privoxy dnscrypt-proxy
  adb fastboot idevicesyslog ios-deploy scrcpy`;

/** Buckets and files: what lies on this side is read or written. */
const BUCKETS: Model = {
  options: `-rRqvnPdJ -m -x: -a: -h: -p: -z: -j: --recursive --quiet --verbose --dryrun --dry-run --exclude= --include= --acl= --profile=
    --region= --endpoint-url=host --no-progress --only-show-errors --size-only --exact-timestamps --storage-class= --sse=
    --content-type= --cache-control= --metadata= --follow-symlinks --no-follow-symlinks --force --delete
    --delete-unmatched-destination-objects --no-sign-request --output= --no-clobber`,
  operands: "data*",
  tells: "--help",
  fixed: ["network"],
  also: moved,
};

function moved(use: Use): readonly Found[] {
  const empties =
    given(use, "--delete", "--delete-unmatched-destination-objects", "-d") ||
    / (?:sync|bisync)$/.test(use.program);
  return [...copied(use, elsewhere), ...(empties ? emptied(use, elsewhere) : [])];
}

const AWS: Model = {
  options: `--profile= --region= --output= --query= --endpoint-url=host --no-sign-request --no-verify-ssl --no-paginate --debug
    --color= --no-cli-pager --ca-bundle=read --cli-read-timeout= --cli-connect-timeout= --no-cli-auto-prompt`,
  tells: "--version",
  commands: {
    s3: {
      tells: "",
      commands: { ...named("cp mv sync", BUCKETS), ...named("ls mb rb rm presign website", remote("")) },
    },
    ...named(
      `sts s3api ec2 ecs ecr ecr-public eks iam lambda logs cloudformation cloudfront cloudwatch dynamodb rds sns sqs ssm
      secretsmanager kms route53 acm apigateway apigatewayv2 athena batch codebuild codecommit codedeploy codepipeline
      cognito-idp configure elasticache elb elbv2 events glue kinesis organizations redshift sagemaker sso sso-oidc
      stepfunctions support login`,
      remote(""),
    ),
  },
};

const RCLONE: Model = {
  options:
    "-nPqv -i --dry-run --progress --verbose --quiet --transfers= --checkers= --bwlimit= --config=loads --log-file=write",
  tells: "version --version help --help -h",
  commands: {
    ...named("copy copyto move moveto sync bisync", {
      ...BUCKETS,
      options: `${BUCKETS.options ?? ""} --progress --transfers= --checkers= --bwlimit= --config=loads --log-file=write --checksum
        --update --fast-list --create-empty-src-dirs`,
    }),
    ...named(
      `ls lsd lsl lsf lsjson cat check cleanup config delete deletefile purge rmdir rmdirs mkdir mount serve size about link listremotes
      rcat rcd tree touch dedupe hashsum md5sum sha1sum copyurl ncdu obscure selfupdate authorize backend test`,
      remote("--help -h"),
    ),
  },
};

const GSUTIL: Model = {
  options: "-mqD -o: -h: -i: -u:",
  tells: "version --version help --help",
  commands: {
    ...named("cp mv rsync", BUCKETS),
    ...named(
      "ls cat rm mb rb du stat acl iam cors config compose defacl hash label lifecycle logging notification perfdiag retention rewrite setmeta signurl versioning web test update",
      remote(),
    ),
  },
};

/** Copies that are kept somewhere else. */
const BACKUPS = `restic borg borgmatic duplicity duplicati kopia rdiff-backup rsnapshot s3cmd s4cmd s5cmd mcli minio-client azcopy
  backblaze-b2 bup tarsnap attic unison osync lsyncd drive`;

const CLOUDS: Readonly<Record<string, Model>> = {
  aws: AWS,
  rclone: RCLONE,
  gsutil: GSUTIL,
  ...named("heroku vercel vc now netlify wrangler supabase", remote("--version -v --help")),
  ...named("gcloud az doctl fly flyctl ngrok cloudflared civo", remote("--version version --help")),
  ...named(SERVICES, remote()),
  ...named(BACKUPS, remote()),
};

/** `name=@file`, `name:=@file`, `name@file`, `Header:@file`: sent to the other side. */
const SENT = /^[^=@:]*(?::?=@|:@|@)(.+)$/;

/** The first operand, or the one behind a method, is the address; all others are fields. */
function request(use: Use): readonly Found[] {
  const [first, ...rest] = use.operands;
  const method = first !== undefined && /^[A-Z]+$/.test(first.value);
  const address = method ? rest[0] : first;
  const fields = method ? rest.slice(1) : rest;
  const sessions = valuesOf(use, "--session", "--session-read-only");
  return [
    { kind: "network", hosts: address === undefined ? [] : hostOf(address) },
    ...fields.flatMap((field) => {
      const file = SENT.exec(field.value)?.[1];
      return file === undefined ? [] : [reading(part(field, file.replace(/;type=.*$/, "")), use)];
    }),
    ...(given(use, "-d", "--download") && !given(use, "-o", "--output")
      ? downloads(use, address === undefined ? [] : [address])
      : []),
    ...sessions.filter(({ value }) => value.includes("/")).map((file) => writing(file, use)),
  ];
}

/** `:3000/path` is this machine. */
const hostOf = (address: Arg): readonly string[] =>
  address.value.startsWith(":") ? ["localhost"] : hostsOf(address);

const HTTPIE: Model = {
  options: `-jfFdchbvSqIx -p: -s: -a: -A: -P: -m: -o:write --json --form --multipart --follow --download --continue
    --headers --body --meta --verbose --all --stream --quiet --pretty= --style= --format-options= --unsorted --sorted
    --print= --history-print= --auth= --auth-type= --bearer= --ignore-netrc --ignore-stdin --max-redirects= --max-headers=
    --timeout= --check-status --path-as-is --chunked --compress --raw= --boundary= --verify= --ssl= --ciphers=
    --default-scheme= --http-version= --https --offline --curl --native-tls --response-charset= --response-mime=
    --debug --traceback --session= --session-read-only= --proxy= --output=write --cert=read --cert-key=read`,
  operands: "data*",
  tells: "--version -V --help",
  also: request,
};

/** Pages, in a terminal or in a window; all of them run scripts or helpers. */
const BROWSERS = `lynx w3m links links2 elinks browsh google-chrome google-chrome-stable chrome chromium chromium-browser
  firefox firefox-esr brave brave-browser opera vivaldi microsoft-edge safari epiphany midori qutebrowser`;

const FETCHERS = `fetch lwp-request GET HEAD POST httrack youtube-dl gallery-dl transmission-cli transmission-remote rtorrent
  deluge qbittorrent-nox grpcurl websocat wscat hey wrk ab siege vegeta k6 oha bombardier newman restish hurl
  webbrowser sensible-browser www-browser x-www-browser gnome-open kde-open wslview`;

const VIDEOS: Model = {
  options: `-qvsiFjJ46 -f: -S: -r: -R: -I: -U: -x -k -w -c -N: --quiet --simulate --no-simulate --list-formats --dump-json
    --print= --format= --extract-audio --audio-format= --audio-quality= --no-playlist --yes-playlist --playlist-items=
    --write-subs --write-auto-subs --sub-langs= --sub-lang= --skip-download --get-url --get-title --verbose
    --no-warnings --newline --no-progress --restrict-filenames -o:write --output=write -P:target --paths=target
    -a:read --batch-file=read --cookies=write --download-archive=write --proxy=host --exec=shell
    --config-location=loads --config-locations=loads --plugin-dirs=loads --external-downloader=loads
    --downloader=loads --ffmpeg-location=loads`,
  operands: "host*",
  tells: "--version --help -h",
  also: (use) => [
    ...reachesAnyway(use),
    ...(given(use, "-o", "--output", "-P", "--paths") ? [] : downloads(use, [])),
  ],
};

const CLIENTS: Readonly<Record<string, Model>> = {
  ...named("http https httpie xh xhs", HTTPIE),
  ...named(BROWSERS, remote("--version -version --help")),
  ...named(FETCHERS, remote()),
  "yt-dlp": VIDEOS,
};

/** All that reaches the network or controls other machines. */
export const NETWORK: readonly Readonly<Record<string, Model>>[] = [
  CURL,
  WGET,
  CLIENTS,
  SOCKETS,
  SSH_CLIENTS,
  KEYS,
  RSYNC,
  PROBES,
  LINKS,
  OPENSSL,
  CONTAINERS,
  MACHINES_AND_SERVERS,
  CLUSTERS,
  PROVISIONING,
  CLOUDS,
  DATABASES,
];
