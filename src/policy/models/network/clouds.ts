import type { Found, Model, Use } from "../model.ts";
import { copied, emptied, named as elsewhere } from "./copies.ts";
import { given, named, remote } from "./parts.ts";

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

export const CLOUDS: Readonly<Record<string, Model>> = {
  aws: AWS,
  rclone: RCLONE,
  gsutil: GSUTIL,
  ...named("heroku vercel vc now netlify wrangler supabase", remote("--version -v --help")),
  ...named("gcloud az doctl fly flyctl ngrok cloudflared civo", remote("--version version --help")),
  ...named(SERVICES, remote()),
  ...named(BACKUPS, remote()),
};
