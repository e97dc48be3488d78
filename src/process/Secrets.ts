import { Context, Effect, FileSystem, Layer, Option, Path, Redacted, Schema } from "effect"
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual
} from "node:crypto"
import { AppConfig, ConfigFault } from "../config/Config.ts"
import { isAdminToken, isMasterKey } from "../config/SecretSettings.ts"

/** Ciphertext that this key cannot open: the wrong `MASTER_KEY`, or damage. */
export class SecretUnreadable extends Schema.TaggedError<SecretUnreadable>()(
  "SecretUnreadable",
  {}
) {}

/** The operator's token and all that derives from the master key. Contract 8 and 9. */
export class Secrets extends Context.Service<
  Secrets,
  {
    /** Constant-time comparison with `ADMIN_TOKEN`. */
    readonly isAdminToken: (token: string) => boolean
    /** AES-256-GCM: 12 bytes nonce, 16 bytes tag, ciphertext. */
    readonly encrypt: (text: string) => Uint8Array
    readonly decrypt: (bytes: Uint8Array) => Effect.Effect<string, SecretUnreadable>
    /** HMAC-SHA256 as hex under a key of its own for this purpose. */
    readonly mac: (purpose: string, text: string) => string
    /** The operator token, when this start generated it: shown once. */
    readonly generatedAdminToken: Option.Option<Redacted.Redacted>
  }
>()("gateway/process/Secrets") {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const config = yield* AppConfig
      const token = yield* given(config.adminToken, {
        name: "admin-token",
        generate: () => `op_${randomBytes(24).toString("base64url")}`,
        isWhole: isAdminToken
      })
      const master = yield* given(config.masterKey, {
        name: "master-key",
        generate: () => randomBytes(32).toString("base64"),
        isWhole: isMasterKey
      })
      return makeSecrets(token, master.value)
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

interface Given {
  readonly value: string
  readonly generated: boolean
}

/** A secret that lies in `DATA_DIR`. */
interface OwnSecret {
  /** Of its file. */
  readonly name: string
  readonly generate: () => string
  readonly isWhole: (value: string) => boolean
}

/** The configured secret; else the one in `DATA_DIR`; else a new one, written there for the owner only. */
const given = Effect.fnUntraced(function* (
  configured: Option.Option<Redacted.Redacted>,
  { generate, isWhole, name }: OwnSecret
) {
  if (Option.isSome(configured)) {
    return { value: Redacted.value(configured.value), generated: false }
  }
  const { dataDir } = yield* AppConfig
  const fs = yield* FileSystem.FileSystem
  const file = (yield* Path.Path).join(dataDir, name)
  const unusable = Effect.mapError(
    (error: { readonly message: string }) =>
      new ConfigFault({
        message: `DATA_DIR: ${file}: ${error.message}; set a folder that can be written`
      })
  )
  if (yield* unusable(fs.exists(file))) {
    const value = (yield* unusable(fs.readFileString(file))).trim()
    // An empty one would be a key that everybody has
    return isWhole(value) ? { value, generated: false } : yield* damaged(file)
  }
  const value = generate()
  yield* unusable(fs.makeDirectory(dataDir, { recursive: true }))
  yield* unusable(writeWhole(fs, file, `${value}\n`))
  return { value, generated: true }
})

const damaged = (file: string) =>
  new ConfigFault({
    message: `DATA_DIR: ${file} is damaged; restore it from a backup, or remove it to have a new one made (what was encrypted with a master key that is lost is lost too)`
  })

/** There with all of its bytes on the disk, or not at all. */
const writeWhole = (fs: FileSystem.FileSystem, file: string, text: string) => {
  const aside = `${file}.new`
  return Effect.gen(function* () {
    yield* fs.remove(aside, { force: true })
    const draft = yield* fs.open(aside, { flag: "wx", mode: 0o600 })
    yield* draft.writeAll(new TextEncoder().encode(text))
    yield* draft.sync
    yield* fs.rename(aside, file)
  }).pipe(Effect.scoped)
}

const nonceBytes = 12
const tagBytes = 16

const makeSecrets = (token: Given, masterBase64: string): Secrets["Service"] => {
  const master = Buffer.from(masterBase64, "base64")
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", master, "", purpose, 32))
  const encryptionKey = derive("encryption at rest")
  const macKeys = new Map<string, Buffer>()
  const macKey = (purpose: string): Buffer => {
    const key = macKeys.get(purpose) ?? derive(`mac: ${purpose}`)
    macKeys.set(purpose, key)
    return key
  }
  const digest = (text: string) => createHash("sha256").update(text).digest()
  const tokenDigest = digest(token.value)
  return Secrets.of({
    isAdminToken: (candidate) => timingSafeEqual(digest(candidate), tokenDigest),
    encrypt: (text) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv("aes-256-gcm", encryptionKey, nonce)
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
    },
    decrypt: (bytes) =>
      Effect.try({
        try: () => {
          const nonce = bytes.subarray(0, nonceBytes)
          // A shorter tag is refused
          const length = { authTagLength: tagBytes }
          const decipher = createDecipheriv("aes-256-gcm", encryptionKey, nonce, length)
          decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
          const sealed = bytes.subarray(nonceBytes + tagBytes)
          return Buffer.concat([decipher.update(sealed), decipher.final()]).toString("utf8")
        },
        catch: () => new SecretUnreadable()
      }),
    mac: (purpose, text) => createHmac("sha256", macKey(purpose)).update(text).digest("hex"),
    generatedAdminToken: token.generated ? Option.some(Redacted.make(token.value)) : Option.none()
  })
}
