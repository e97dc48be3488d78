import { Clock, Effect, FileSystem, Path } from "effect"
import { generate } from "selfsigned"

const dayMillis = 86_400_000
const validDays = 365

/** The folder that a demo against a running service uses. */
export const defaultFolder = "data/demo"

/** The key and the certificate of the receiver, in PEM format. */
export interface Certificate {
  readonly key: string
  readonly cert: string
  /** The root certificate that the service must trust. */
  readonly rootFile: string
}

/**
 * The receiver's certificate in that folder, created if necessary. The files are kept, because a running service must
 * trust the root certificate from its start. The server certificate is not self-signed, because Deno refuses those.
 */
export const certificateIn = Effect.fn("Demo.certificateIn")(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const rootFile = path.resolve(folder, "root.pem")
  const certFile = path.resolve(folder, "receiver.pem")
  const keyFile = path.resolve(folder, "receiver-key.pem")
  if (!(yield* fs.exists(keyFile))) {
    const made = yield* makeCertificate
    yield* fs.makeDirectory(folder, { recursive: true })
    yield* fs.writeFileString(rootFile, made.root)
    yield* fs.writeFileString(certFile, made.cert)
    yield* fs.writeFileString(keyFile, made.key, { mode: 0o600 })
  }
  const [key, cert] = [yield* fs.readFileString(keyFile), yield* fs.readFileString(certFile)]
  return { key, cert, rootFile }
})

const makeCertificate = Effect.flatMap(Clock.currentTimeMillis, (now) =>
  Effect.promise(async () => {
    const validity = {
      keyType: "ec" as const,
      algorithm: "sha256",
      notBeforeDate: new Date(now - dayMillis),
      notAfterDate: new Date(now + validDays * dayMillis)
    }
    const root = await generate([{ name: "commonName", value: "Demo root" }], {
      ...validity,
      extensions: [
        { name: "basicConstraints", cA: true, critical: true },
        { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true }
      ]
    })
    const server = await generate([{ name: "commonName", value: "localhost" }], {
      ...validity,
      ca: { key: root.private, cert: root.cert },
      extensions: [
        { name: "basicConstraints", cA: false },
        { name: "keyUsage", digitalSignature: true, critical: true },
        { name: "extKeyUsage", serverAuth: true },
        {
          name: "subjectAltName",
          altNames: [
            { type: 2, value: "localhost" },
            { type: 7, ip: "127.0.0.1" }
          ]
        }
      ]
    })
    return { root: root.cert, cert: server.cert, key: server.private }
  })
)
