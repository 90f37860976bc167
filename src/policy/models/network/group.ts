import type { Model } from "../model.ts";
import { CLIENTS } from "./clients.ts";
import { CLOUDS } from "./clouds.ts";
import { CLUSTERS } from "./clusters.ts";
import { CONTAINERS } from "./containers.ts";
import { CURL } from "./curl.ts";
import { DATABASES } from "./databases.ts";
import { KEYS } from "./keys.ts";
import { LINKS } from "./links.ts";
import { MACHINES_AND_SERVERS } from "./machines.ts";
import { OPENSSL } from "./openssl.ts";
import { PROBES } from "./probes.ts";
import { PROVISIONING } from "./provision.ts";
import { RSYNC } from "./rsync.ts";
import { SOCKETS } from "./sockets.ts";
import { SSH_CLIENTS } from "./ssh.ts";
import { WGET } from "./wget.ts";

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
