import type { Found, Model, Use } from "../model.ts";
import { named, remote } from "./parts.ts";

/** Libraries and settings that run code. */
const CODE = "-engine=loads -provider=loads -provider-path=loads -config=loads -propquery=";
const FORMS = "-inform= -outform= -text -noout -nameopt= -certopt=";

/** `http:`, `file:` and other schemes stand for files as well. */
const schemes = (use: Use): readonly Found[] =>
  use.args
    .filter(({ value }) => /^[a-z][a-z0-9.+-]+:/i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));

/** `-option` and `--option` are the same; none may be shortened or bundled. */
const table = (options: string, operands = ""): Model => ({
  options: `-help ${CODE} ${options}`,
  operands,
  singleDash: true,
  tells: "-help --help",
});

const part = (options: string, operands = ""): Model => ({ ...table(options, operands), also: schemes });

/** Makes, unlocks or changes keys and what they sign: never without being asked. */
const secretive = (options: string): Model => ({ ...table(options, "data*"), fixed: ["ask"] });

const KEY = `${FORMS} -in=read -out=write -pubin -pubout -pubcheck -check -modulus -passin= -passout= -traditional -aes128
  -aes256 -des3 -topk8 -nocrypt -inkey=read -key=read -keyout=write -newkey= -new -x509 -nodes -noenc -batch -days= -subj=
  -addext= -extensions= -extfile=read -reqexts= -CA=read -CAkey=read -CAfile=read -CAserial=write -CAcreateserial -set_serial=
  -sha256 -sha384 -sha512 -algorithm= -pkeyopt= -paramfile=read -genkey -name= -param_enc= -conv_form= -export
  -certfile=read -certs=read -caname= -macalg= -legacy -keypbe= -certpbe= -nokeys -nocerts -clcerts -cacerts -info`;

const CIPHER = `-in=read -out=write -e -d -a -base64 -A -k= -kfile=read -K= -iv= -S= -salt -nosalt -p -P -pass= -pbkdf2 -iter= -md=
  -nopad -bufsize= -v -aes-128-cbc -aes-256-cbc -aes-256-ctr -aes256 -aes128 -des3 -list -ciphers`;

const DIGESTS = `md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 shake128
  shake256 blake2b512 blake2s256 rmd160 ripemd160 sm3`;

const DIGEST = part(
  `-c -d -r -hex -binary -list -xoflen= -fips-fingerprint -non-fips-allow -hmac= -out=write -sign=read -verify=read
  -prverify=read -signature=read -keyform= -passin= -sigopt= -mac= -macopt= ${DIGESTS.split(/\s+/)
    .map((name) => `-${name}`)
    .join(" ")}`,
  "read*",
);

const TALKS: Model = {
  ...table(
    `-connect=host -host=host -port= -servername= -proxy=host -accept= -cert=read -key=read -CAfile=read -CApath=read
    -showcerts -brief -quiet -state -debug -msg -tls1 -tls1_1 -tls1_2 -tls1_3 -no_ssl3 -no_tls1 -no_tls1_1 -no_tls1_2
    -no_tls1_3 -alpn= -nextprotoneg= -starttls= -xmpphost= -name= -verify= -verify_return_error -verify_hostname= -status
    -cipher= -ciphersuites= -curves= -groups= -sigalgs= -reconnect -crlf -ign_eof -no_ign_eof -prexit -4 -6 -www -WWW
    -HTTP -rev -keylogfile=write -msgfile=write -sess_out=write -sess_in=read -keymatexport= -url=host -issuer=read
    -reqin=read -respout=write -noverify -time= -bugs -new -reuse -CRL=read -noservername`,
    "host",
  ),
  fixed: ["network"],
};

export const OPENSSL: Readonly<Record<string, Model>> = {
  openssl: {
    tells: "version help --help -help --version -v",
    singleDash: true,
    commands: {
      version: part("-a -b -d -e -f -o -p -v -r -c"),
      help: part("", "data*"),
      list: part(`-1 -commands -digest-commands -digest-algorithms -cipher-commands -cipher-algorithms -providers -verbose
        -public-key-algorithms -disabled -options= -kdf-algorithms -mac-algorithms -tls-groups -all-algorithms`),
      ciphers: part(
        "-s -v -V -stdname -tls1 -tls1_1 -tls1_2 -tls1_3 -psk -srp -ciphersuites= -convert=",
        "data",
      ),
      dgst: DIGEST,
      ...named(DIGESTS, DIGEST),
      x509: part(
        `${FORMS} -in=read -out=write -serial -subject -issuer -dates -startdate -enddate -fingerprint -hash -subject_hash
        -issuer_hash -email -ocsp_uri -purpose -pubkey -modulus -alias -ext= -checkend= -checkhost= -checkemail= -checkip=
        -sha1 -sha256 -sha384 -sha512 -md5 -signkey=read -key=read -CA=read -CAkey=read -CAserial=write -CAcreateserial!ask
        -req!ask -days= -set_serial= -extfile=read -extensions= -passin= -trustout -clrext -dateopt=`,
      ),
      crl: part(
        `${FORMS} -in=read -out=write -CAfile=read -CApath=read -hash -fingerprint -issuer -lastupdate -nextupdate -verify`,
      ),
      verify: part(
        `-CAfile=read -CApath=read -untrusted=read -trusted=read -CRLfile=read -crl_check -crl_check_all -purpose= -verbose
        -verify_hostname= -verify_email= -verify_ip= -x509_strict -partial_chain -no_check_time -attime= -show_chain
        -no-CAfile -no-CApath -nameopt=`,
        "read*",
      ),
      asn1parse: part(
        "-inform= -in=read -out=write -noout -offset= -length= -i -dump -dlimit= -oid=read -strparse= -genstr= -genconf=loads",
      ),
      rand: part("-out=write -base64 -hex -writerand=write -rand=read", "data"),
      prime: part("-hex -generate -bits= -safe -checks=", "data*"),
      errstr: part("", "data*"),
      base64: part(`-in=read -out=write -e -d -a -A -v -bufsize=`),
      enc: secretive(CIPHER),
      ...named("aes-128-cbc aes-256-cbc aes-256-ctr des3", secretive(CIPHER)),
      ...named(
        `genrsa genpkey gendsa req rsa rsautl pkey pkeyutl pkeyparam pkcs7 pkcs8 pkcs12 ec ecparam dsa dsaparam dhparam ca
        cms smime spkac crl2pkcs7 passwd kdf mac rehash storeutl srp ts nseq fipsinstall speed info sess_id`,
        secretive(KEY),
      ),
      ...named("s_client s_server s_time ocsp cmp", TALKS),
      engine: { ...part("-v -t -c -vv -vvv -pre= -post=", "loads*") },
    },
  },
  ...named("gnutls-cli gnutls-serv step", remote()),
  ...named("certtool certutil pk12util mkcert cfssl", { operands: "data*", fixed: ["ask"] }),
};
