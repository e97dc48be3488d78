import {
  Array as Arr,
  Context,
  Effect,
  FileSystem,
  Layer,
  Option,
  Path,
  Redacted,
  Schema
} from "effect"
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes
} from "node:crypto"
import { AppConfig, ConfigFault } from "../../config/Config.ts"
import { isAdminToken, isMasterKey, masterKeysOf } from "../../config/SecretSettings.ts"
import { isSameBytes } from "../../domain/ConstantTime.ts"

/** Ciphertext that no key can decrypt, because `MASTER_KEY` is wrong or the value is damaged. */
export class SecretUnreadable extends Schema.TaggedError<SecretUnreadable>()(
  "SecretUnreadable",
  {}
) {}

/**
 * The operator's token and everything derived from the master key.
 * docs/reference/configuration.md#secrets
 */
export class Secrets extends Context.Service<
  Secrets,
  {
    /** Compares with `ADMIN_TOKEN` in constant time. */
    readonly isAdminToken: (token: string) => boolean
    /** Compares with `METRICS_TOKEN` in constant time; `None` if it is not set. */
    readonly isMetricsToken: Option.Option<(token: string) => boolean>
    /** Changes when `ADMIN_TOKEN` or `MASTER_KEY` changes. */
    readonly adminTokenMac: string
    /**
     * Encrypts with AES-256-GCM under the first master key. The result is a nonce of 12 bytes, a tag of 16 bytes, then
     * the ciphertext.
     */
    readonly encrypt: (text: string) => Uint8Array
    /** Decrypts with whichever master key fits. ADR 0222 */
    readonly decrypt: (bytes: Uint8Array) => Effect.Effect<string, SecretUnreadable>
    /** Re-encrypts under the first master key; `None` if the value already is. */
    readonly reencrypt: (
      bytes: Uint8Array
    ) => Effect.Effect<Option.Option<Uint8Array>, SecretUnreadable>
    /** HMAC-SHA256 as hex, with a key derived from the first master key for this purpose. */
    readonly mac: (purpose: string, text: string) => string
    /** The MACs under all master keys, in the order of the keys. */
    readonly macs: (purpose: string, text: string) => ReadonlyArray<string>
    /** Constant-time comparison with the MACs under all master keys. */
    readonly isMac: (purpose: string, text: string, mac: string) => boolean
    /** The operator's token, if this startup generated it. It is shown once. */
    readonly generatedAdminToken: Option.Option<Redacted.Redacted>
  }
>()("gateway/process/Secrets") {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const config = yield* AppConfig
      const token = yield* loadSecret(config.adminToken, adminTokenFile)
      const master = yield* loadSecret(config.masterKey, masterKeyFile)
      return makeSecrets(token, master.value, config.metricsToken)
    })
  )

  /** Fixed keys, for tests. */
  static readonly layerTest = Layer.sync(Secrets, () =>
    makeSecrets(
      { value: "op_test_token_for_operators", generated: false },
      Buffer.alloc(32, 7).toString("base64")
    )
  )
}

interface LoadedSecret {
  readonly value: string
  readonly generated: boolean
}

/** A secret stored as a file in `DATA_DIR`. */
interface SecretFile {
  /** The file name. */
  readonly name: string
  readonly generate: () => string
  readonly isValid: (value: string) => boolean
}

const adminTokenFile: SecretFile = {
  name: "admin-token",
  generate: () => `op_${randomBytes(24).toString("base64url")}`,
  isValid: isAdminToken
}

const masterKeyFile: SecretFile = {
  name: "master-key",
  generate: () => randomBytes(32).toString("base64"),
  isValid: isMasterKey
}

const pathOf = Effect.fnUntraced(function* ({ name }: SecretFile) {
  const { dataDir } = yield* AppConfig
  return (yield* Path.Path).join(dataDir, name)
})

const namingFile = (file: string) =>
  Effect.mapError(
    (error: { readonly message: string }) =>
      new ConfigFault({
        message: `DATA_DIR: ${file}: ${error.message}; set a writable folder`
      })
  )

/** The configured secret; otherwise the one in `DATA_DIR`. */
const findSecret = Effect.fnUntraced(function* (
  configured: Option.Option<Redacted.Redacted>,
  secret: SecretFile
) {
  if (Option.isSome(configured)) return Option.some(Redacted.value(configured.value))
  const fs = yield* FileSystem.FileSystem
  const file = yield* pathOf(secret)
  if (!(yield* namingFile(file)(fs.exists(file)))) return Option.none()
  const value = (yield* namingFile(file)(fs.readFileString(file))).trim()
  // An empty file would be a key that everyone knows
  return secret.isValid(value) ? Option.some(value) : yield* damaged(file)
})

/** The existing secret; otherwise a new one, stored in `DATA_DIR` readable by the owner only. */
const loadSecret = Effect.fnUntraced(function* (
  configured: Option.Option<Redacted.Redacted>,
  secret: SecretFile
) {
  const found = yield* findSecret(configured, secret)
  if (Option.isSome(found)) return { value: found.value, generated: false }
  const { dataDir } = yield* AppConfig
  const fs = yield* FileSystem.FileSystem
  const file = yield* pathOf(secret)
  const value = secret.generate()
  yield* namingFile(file)(fs.makeDirectory(dataDir, { recursive: true }))
  yield* namingFile(file)(writeAtomically(fs, file, `${value}\n`))
  return { value, generated: true }
})

/** The MACs under the existing master keys; `None` if a start would generate the first one. Creates nothing. */
export const existingMacs = Effect.gen(function* () {
  const { masterKey } = yield* AppConfig
  return Option.map(yield* findSecret(masterKey, masterKeyFile), (keys) => ({
    macs: macsOf(Arr.map(masterKeysOf(keys), makeMasterKey))
  }))
})

const damaged = (file: string) =>
  new ConfigFault({
    message: `DATA_DIR: ${file} is damaged; restore it from a backup, or remove it to generate a new one (data encrypted with a lost master key are lost too)`
  })

/** After a crash, the file is either complete or absent. */
const writeAtomically = (fs: FileSystem.FileSystem, file: string, text: string) => {
  const temporary = `${file}.new`
  return Effect.gen(function* () {
    yield* fs.remove(temporary, { force: true })
    const draft = yield* fs.open(temporary, { flag: "wx", mode: 0o600 })
    yield* draft.writeAll(new TextEncoder().encode(text))
    yield* draft.sync
    yield* fs.rename(temporary, file)
  }).pipe(Effect.scoped)
}

const nonceBytes = 12
const tagBytes = 16

/** Everything derived from one master key. */
const makeMasterKey = (base64: string) => {
  const master = Buffer.from(base64, "base64")
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", master, "", purpose, 32))
  const encryptionKey = derive("encryption at rest")
  const macKeys = new Map<string, Buffer>()
  const macKey = (purpose: string): Buffer => {
    const key = macKeys.get(purpose) ?? derive(`mac: ${purpose}`)
    macKeys.set(purpose, key)
    return key
  }
  return {
    encrypt: (text: string): Uint8Array => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv("aes-256-gcm", encryptionKey, nonce)
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
    },
    decrypt: (bytes: Uint8Array) =>
      Effect.try({
        try: () => {
          const nonce = bytes.subarray(0, nonceBytes)
          // Without the length, GCM would also accept a shorter tag
          const length = { authTagLength: tagBytes }
          const decipher = createDecipheriv("aes-256-gcm", encryptionKey, nonce, length)
          decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
          const sealed = bytes.subarray(nonceBytes + tagBytes)
          return Buffer.concat([decipher.update(sealed), decipher.final()]).toString("utf8")
        },
        catch: () => new SecretUnreadable()
      }),
    mac: (purpose: string, text: string) =>
      createHmac("sha256", macKey(purpose)).update(text).digest("hex")
  }
}

const macsOf =
  (keys: ReadonlyArray<Pick<Secrets["Service"], "mac">>) => (purpose: string, text: string) =>
    keys.map((key) => key.mac(purpose, text))

const digest = (text: string) => createHash("sha256").update(text).digest()

/** Compares in constant time, whatever the lengths. */
const comparerWith = (secret: string) => {
  const expected = digest(secret)
  return (candidate: string) => isSameBytes(digest(candidate), expected)
}

const makeSecrets = (
  token: LoadedSecret,
  masterKeys: string,
  metricsToken: Option.Option<Redacted.Redacted> = Option.none()
): Secrets["Service"] => {
  const [first, ...others] = Arr.map(masterKeysOf(masterKeys), makeMasterKey)
  const decryptByOthers = (bytes: Uint8Array) =>
    Effect.firstSuccessOf([
      ...others.map((key) => key.decrypt(bytes)),
      Effect.fail(new SecretUnreadable())
    ])
  const macs = macsOf([first, ...others])
  return Secrets.of({
    isAdminToken: comparerWith(token.value),
    isMetricsToken: Option.map(metricsToken, (it) => comparerWith(Redacted.value(it))),
    adminTokenMac: first.mac("operator", token.value),
    encrypt: first.encrypt,
    decrypt: (bytes) => Effect.catch(first.decrypt(bytes), () => decryptByOthers(bytes)),
    reencrypt: (bytes) =>
      first.decrypt(bytes).pipe(
        Effect.as(Option.none()),
        Effect.catch(() =>
          Effect.map(decryptByOthers(bytes), (text) => Option.some(first.encrypt(text)))
        )
      ),
    mac: first.mac,
    macs,
    isMac: (purpose, text, candidate) =>
      macs(purpose, text).some((mac) => isSameBytes(Buffer.from(candidate), Buffer.from(mac))),
    generatedAdminToken: token.generated ? Option.some(Redacted.make(token.value)) : Option.none()
  })
}
