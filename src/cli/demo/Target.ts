import { Clock, Effect, FileSystem, Option, Redacted, Ref, Schedule, Schema, Stream } from "effect"
import type { Path, Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { certificateIn, defaultFolder } from "./Certificate.ts"
import type { Certificate } from "./Certificate.ts"
import { Client } from "./Client.ts"
import { Report } from "./Report.ts"

/** The demo cannot start. The message says what to do. */
export class DemoFault extends Schema.TaggedError<DemoFault>()("DemoFault", {
  message: Schema.String
}) {}

/** The service that the demo runs against. */
export interface Target {
  readonly baseUrl: string
  readonly serviceName: string
  /** An API key, or the operator's token with which the demo creates a user. */
  readonly access:
    | { readonly apiKey: Redacted.Redacted }
    | { readonly operatorToken: Redacted.Redacted }
  readonly certificate: Certificate
  /** Tells the operator of a running service how to let it send webhooks to this machine. */
  readonly hint: Option.Option<string>
}

/** Turns a failure of the machine, such as a full disk, into a one-sentence error instead of a stack. */
export const orFault = <A, R>(work: Effect.Effect<A, Error, R>) =>
  Effect.mapError(work, ({ message }) => new DemoFault({ message }))

type Variables = Readonly<Record<string, string | undefined>>

/** The running service that `GATEWAY_URL` names. */
export const runningTarget = Effect.fn("Demo.runningTarget")(function* (
  url: string,
  env: Variables
): Effect.fn.Return<Target, DemoFault, FileSystem.FileSystem | Path.Path> {
  const certificate = yield* orFault(certificateIn(defaultFolder))
  const apiKey = env["GATEWAY_API_KEY"]
  const operatorToken = env["GATEWAY_ADMIN_TOKEN"]
  const access =
    apiKey === undefined
      ? operatorToken === undefined
        ? undefined
        : { operatorToken: Redacted.make(operatorToken) }
      : { apiKey: Redacted.make(apiKey) }
  if (access === undefined) {
    return yield* new DemoFault({
      message:
        "GATEWAY_API_KEY: is not set, nor is GATEWAY_ADMIN_TOKEN; set a key with both scopes, " +
        "or the operator's token, and the demo creates a user"
    })
  }
  return {
    baseUrl: url.replace(/\/+$/u, ""),
    serviceName: env["SERVICE_NAME"] ?? "Service",
    access,
    certificate,
    hint: Option.some(
      "Start the service so that it trusts the receiver's certificate and may call this machine:\n" +
        `  EGRESS_ALLOW=localhost NODE_EXTRA_CA_CERTS=${certificate.rootFile}   (Node and Deno)`
    )
  }
})

const mainFile = fileURLToPath(new URL("../../main.ts", import.meta.url))
const isDeno = "Deno" in globalThis
const readyWithin = "30 seconds"

/** Starts a service in a temporary folder, without vendor keys; both are removed afterwards. */
export const startTarget = Effect.fn("Demo.startTarget")(function* (
  env: Variables
): Effect.fn.Return<
  Target,
  DemoFault,
  Scope.Scope | FileSystem.FileSystem | Path.Path | ChildProcessSpawner.ChildProcessSpawner | Report
> {
  const fs = yield* FileSystem.FileSystem
  const report = yield* Report
  const folder = yield* orFault(fs.makeTempDirectoryScoped({ prefix: "gateway-demo-" }))
  const certificate = yield* orFault(certificateIn(`${folder}/receiver`))
  const port = yield* freePort
  const baseUrl = `http://localhost:${port}`
  const operatorToken = `op_${SecureRandom.uuidV4Unsafe()}`
  const started = yield* Clock.currentTimeMillis
  yield* startService(
    {
      ...inherited(env),
      DATA_DIR: `${folder}/data`,
      PORT: `${port}`,
      ADMIN_TOKEN: operatorToken,
      EGRESS_ALLOW: "localhost",
      SIMULATOR_DELAY: "1500 millis to 3 seconds",
      NODE_EXTRA_CA_CERTS: certificate.rootFile
    },
    baseUrl
  )
  const ended = yield* Clock.currentTimeMillis
  const seconds = ((ended - started) / 1000).toFixed(1)
  yield* report.print(
    `Started a service at ${baseUrl}, ready after ${seconds} s (new embedded store)`
  )
  const access = { operatorToken: Redacted.make(operatorToken) }
  return { baseUrl, serviceName: "Service", access, certificate, hint: Option.none() }
})

/**
 * The environment without the vendors' keys and `DATABASE_URL`, so that the demo spends no money and touches no data.
 */
const inherited = (env: Variables): Record<string, string> =>
  Object.fromEntries(
    ["PATH", "HOME", "TMPDIR", "DENO_DIR", "SystemRoot", "LD_LIBRARY_PATH"].flatMap((name) => {
      const value = env[name]
      return value === undefined ? [] : [[name, value]]
    })
  )

const startService = Effect.fnUntraced(function* (env: Record<string, string>, baseUrl: string) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const commandLine = isDeno ? ["run", "--allow-all", mainFile] : [mainFile]
  const child = yield* orFault(
    spawner.spawn(
      ChildProcess.make(globalThis.process.execPath, commandLine, {
        env,
        extendEnv: false,
        forceKillAfter: "10 seconds"
      })
    )
  )
  const output = yield* Ref.make("")
  yield* child.all.pipe(
    Stream.decodeText(),
    Stream.runForEach((text) => Ref.update(output, (all) => `${all}${text}`.slice(-4000))),
    Effect.ignore,
    Effect.forkScoped
  )
  const failed = (why: string) =>
    Effect.flatMap(Ref.get(output), (text) =>
      Effect.fail(new DemoFault({ message: `The service ${why}. Its output:\n${text}` }))
    )
  const ready = Effect.flatMap(Client, (client) => client.ready).pipe(
    Effect.repeat({ until: (is) => is, schedule: Schedule.spaced("50 millis") }),
    Effect.provide(Client.layer(baseUrl, "Service")),
    Effect.timeoutOrElse({
      duration: readyWithin,
      orElse: () => failed(`was not ready within ${readyWithin}`)
    })
  )
  const ended = orFault(child.exitCode).pipe(
    Effect.flatMap((code) => failed(`ended with status ${code}`))
  )
  yield* Effect.raceFirst(ready, ended)
})

const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})
