/**
 * Keys that show by their form what they are: what they are called → how they begin and go on. A row holds no group, and
 * nothing behind a repetition without a bound, so that a text is read once whatever it is made of.
 */
export const TOKEN_FORMS: readonly (readonly [kind: string, form: string])[] = [
  ["github token", "gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,}"],
  ["gitlab token", "gl(?:pat|dt|rt|ptt|soat|ft|cbt|imt|agent|oas)-[A-Za-z0-9_.-]{20,}"],
  ["aws key id", "(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"],
  ["slack token", "xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-\\d-[A-Za-z0-9-]{20,}"],
  [
    "slack webhook",
    "https://hooks\\.slack\\.com/services/T[A-Za-z0-9_]{6,20}/B[A-Za-z0-9_]{6,20}/[A-Za-z0-9_]{16,}",
  ],
  [
    "google key",
    "AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|GOCSPX-[A-Za-z0-9_-]{28,}|ya29\\.[A-Za-z0-9_-]{20,}",
  ],
  ["anthropic key", "sk-ant-[A-Za-z0-9_-]{20,}"],
  ["openai key", "sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,}"],
  ["openrouter key", "sk-or-v\\d-[0-9a-f]{48,}"],
  ["groq key", "gsk_[A-Za-z0-9]{40,}"],
  ["npm token", "npm_[A-Za-z0-9]{36,}"],
  ["pypi token", "pypi-AgE[A-Za-z0-9_-]{50,}"],
  ["stripe key", "[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{32,}"],
  ["huggingface token", "hf_[A-Za-z0-9]{30,}"],
  ["sendgrid key", "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}"],
  ["twilio key", "SK[0-9a-f]{32}(?![A-Za-z0-9])"],
  ["mailgun key", "key-[0-9a-f]{32}(?![A-Za-z0-9])"],
  ["digitalocean token", "do[opr]_v1_[0-9a-f]{64}"],
  ["shopify token", "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"],
  ["databricks token", "dapi[0-9a-f]{32}(?![A-Za-z0-9])"],
  ["docker token", "dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"],
  ["vault token", "hv[sbr]\\.[A-Za-z0-9_-]{24,}"],
  ["telegram token", "\\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"],
  ["age key", "AGE-SECRET-KEY-1[A-Z0-9]{58}"],
  ["json web token", "eyJ[A-Za-z0-9_-]{8,}\\.eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}"],
];
