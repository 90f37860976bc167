import { createHash } from "node:crypto";

/** Sun's format, which every Java reads; its password guards nothing, because trust stores hold no secrets. */
const [MAGIC, VERSION, TRUSTED] = [0xfe_ed_fe_ed, 2, 2];
const PASSWORD = "changeit";
/** The words that Sun hashes into the trailer. */
const WORDS = "Mighty Aphrodite";

/** The certificates of a PEM text as a Java key store. Anything in the text that is no certificate is left out. */
export function javaTrustStore(pem: string): Buffer {
  const certificates = certificatesIn(pem);
  const body = Buffer.concat([
    ...[MAGIC, VERSION, certificates.length].map(word),
    ...certificates.flatMap((der, index) => [
      word(TRUSTED),
      text(`authority-${index}`),
      date(Date.now()),
      text("X.509"),
      word(der.length),
      der,
    ]),
  ]);
  const key = Buffer.from(PASSWORD, "utf16le").swap16();
  const seal = createHash("sha1").update(key).update(WORDS).update(body).digest();
  return Buffer.concat([body, seal]);
}

/** As DER, each once. A certificate that is cut off would make Java refuse the whole store. */
const certificatesIn = (pem: string): readonly Buffer[] =>
  [...new Set(pem.match(CERTIFICATE) ?? [])]
    .map((block) => Buffer.from(block.split("-----")[2] ?? "", "base64"))
    .filter(
      (der) => der.length > 4 && der.readUInt16BE(0) === 0x30_82 && der.readUInt16BE(2) === der.length - 4,
    );

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function date(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

/** ASCII only, so that Java's own form of UTF-8 is the same. */
function text(value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(value.length);
  return Buffer.concat([length, Buffer.from(value, "latin1")]);
}
