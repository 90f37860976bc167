import { commandsFromStdin, named, part, remote, valuesOf } from "./network-arguments.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

/** `\! command` of psql and mysql, `system command` of mysql, `COPY … PROGRAM 'command'`: the client or server runs it. */
const ESCAPES = /\\!\s*([^\n]+)|^\s*system\s+([^\n;]+)|\bprogram\s+'([^']+)'/i;

function statement(text: Arg, use: Use): readonly Found[] {
  const [, escape, system, program] = ESCAPES.exec(text.value) ?? [];
  const command = escape ?? system ?? program;
  if (command !== undefined) return use.shell(part(text, command));
  return text.value.includes("\\") ? [use.doubt("language.unknown", text)] : [];
}

/** Statements on the command line, and those that come in by stdin. */
const statements =
  (...options: readonly string[]) =>
  (use: Use): readonly Found[] => [
    ...valuesOf(use, ...options).flatMap((text) => statement(text, use)),
    ...commandsFromStdin(use),
  ];

const POSTGRES = `-h:host -p: -U: -d: -w -W --host=host --port= --username= --dbname= --no-password --password`;

const PSQL: Model = {
  options: `${POSTGRES} -aAbeEHlnqsStxXz01 -c: -F: -P: -R: -T: -v: -f:loads -o:write -L:write --command= --file=loads --output=write
    --log-file=write --list --csv --html --expanded --tuples-only --no-align --no-psqlrc --quiet --echo-all
    --echo-queries --echo-errors --single-transaction --set= --variable= --pset= --field-separator= --record-separator=
    --no-readline`,
  operands: "data*",
  tells: "--version -V --help -?",
  fixed: ["network"],
  also: statements("-c", "--command"),
};

const DUMP: Model = {
  options: `${POSTGRES} -abBcCgOrsSvxZ -E: -F: -j: -n: -N: -t: -T: -f:write --file=write --format= --schema= --table= --exclude-table=
    --data-only --schema-only --clean --create --if-exists --no-owner --no-acl --no-privileges --verbose --jobs=
    --compress= --inserts --column-inserts --encoding=`,
  operands: "data*",
  tells: "--version -V --help -?",
  fixed: ["network"],
};

const MYSQL: Model = {
  options: `-h:host -P: -u: -p? -D: -e: -S: -ABCEGHNOTUVbcfinoqstvwX --host=host --port= --user= --password=? --database= --execute=
    --socket= --protocol= --ssl --ssl-mode= --ssl-ca=read --ssl-cert=read --ssl-key=read --batch --silent --table --xml
    --html --vertical --raw --skip-column-names --column-names --verbose --force --quick --default-character-set=
    --connect-timeout= --tee=write --init-command= --pager=loads --plugin-dir=loads --defaults-file=loads
    --defaults-extra-file=loads --login-path= --no-defaults --all-databases --databases --no-data --no-create-info
    --single-transaction --routines --triggers --events --add-drop-table --lock-tables --skip-lock-tables
    --result-file=write -r:write --tab=target --where= --hex-blob --set-gtid-purged=`,
  operands: "data*",
  tells: "--version -V --help -?",
  fixed: ["network"],
  also: statements("-e", "--execute", "--init-command"),
};

/** Programs in a language of the shell's own: JavaScript. */
const MONGO: Model = {
  options: `-u: -p? -h: --host=host --port= --username= --password=? --authenticationDatabase= --db= --tls --ssl --quiet --norc --nodb
    --shell --json=? --eval=code --file=project -f:project --retryWrites=`,
  operands: "host project*",
  tells: "--version --help -h",
  fixed: ["network"],
};

const REDIS: Model = {
  options: `-cxX23 -h:host -a: -u:host -p: -s: -t: -n: -r: -i: -d: -D: --raw --no-raw --csv --json --quoted-json --tls --sni= --cacert=read
    --cert=read --key=read --user= --pass= --askpass --no-auth-warning --stat --latency --scan --pattern= --bigkeys
    --memkeys --hotkeys --pipe --verbose --eval=loads --rdb=write --functions-rdb=write --insecure`,
  operands: "data*",
  tells: "--version -v --help",
  fixed: ["network"],
};

const OTHERS = `sqlcmd mssql-cli bcp tsql isql osql sqlplus sqlldr expdp impdp db2 cqlsh nodetool influx clickhouse clickhouse-client
  clickhouse-local mongoexport mongoimport mongodump mongorestore mongotop mongostat pgcli mycli litecli usql dbmate
  flyway liquibase atlas sqitch migrate cypher-shell arangosh couchdb curator esql kcat kafkacat
  kafka-topics kafka-console-consumer kafka-console-producer kafka-topics.sh kafka-console-consumer.sh
  kafka-console-producer.sh rpk nats mosquitto_pub mosquitto_sub amqp-publish rabbitmqadmin memcached-tool
  zkCli.sh trino presto beeline hive impala-shell spark-sql spark-submit spark-shell snowsql databricks dbt`;

export const DATABASES: Readonly<Record<string, Model>> = {
  psql: PSQL,
  ...named("pg_dump pg_dumpall pg_basebackup", DUMP),
  ...named(
    "pg_restore createdb dropdb createuser dropuser vacuumdb reindexdb clusterdb pg_isready pgbench",
    remote("--version -V --help -?"),
  ),
  ...named(
    "mysql mariadb mysqldump mariadb-dump mysqladmin mariadb-admin mysqlimport mysqlshow mysqlcheck mariadb-check mysqlsh",
    MYSQL,
  ),
  ...named("mongo mongosh", MONGO),
  ...named("redis-cli valkey-cli keydb-cli", REDIS),
  ...named(OTHERS, remote()),
};
