import { Effect, Layer, Logger, ManagedRuntime, Option, References, Tracer } from "effect"
import { HttpServer } from "effect/http"
import { afterAll, assert } from "vitest"
import { AppConfig } from "../../src/config/Config.ts"
import * as Gateway from "../../src/Gateway.ts"
import * as Routes from "../../src/http/Routes.ts"
import { Listener } from "../../src/http/server/listener/Listener.ts"
import { Metering } from "../../src/passthrough/Metering.ts"
import { Admission, makeAdmission } from "../../src/process/admission/Admission.ts"
import type { AdmissionService } from "../../src/process/admission/Admission.ts"
import type { Drain } from "../../src/process/Drain.ts"
import { Secrets } from "../../src/process/secrets/Secrets.ts"
import type { ApiKeys } from "../../src/users/ApiKeys.ts"
import type { Users } from "../../src/users/Users.ts"
import { Wallet } from "../../src/wallet/Wallet.ts"
import { makeCaller } from "./callers.ts"
import { adminToken } from "./gateway.ts"
import { startedDatabase } from "./stores.ts"
import { temporaryFolder } from "./temporaryFolder.ts"
import { pause } from "./until.ts"

/** The parts of a JSON response that the tests read. */
interface JsonBody {
  readonly code: number
  readonly detail: string
  readonly errors: ReadonlyArray<{ readonly pointer: string; readonly detail: string }>
  readonly error: { readonly message: string; readonly type: string }
  readonly choices: ReadonlyArray<{ readonly message: { readonly content: string } }>
}

export const jsonOf = async (response: Response | Promise<Response>): Promise<JsonBody> =>
  (await (await response).json()) as JsonBody

/** Starts the whole gateway on its own port, with a user who has 1000 credits and a key. */
export const startGateway = async (
  env: Record<string, string>,
  credits = 1000n,
  tracer?: Tracer.Tracer,
  admission: AdmissionService = makeAdmission()
) => {
  const logs: Array<string> = []
  const logger = Logger.make((entry) => {
    logs.push(Logger.formatJson.log(entry))
  })
  const http = Routes.serve.pipe(
    Layer.provideMerge(Listener.listen({ host: "127.0.0.1", port: 0 }))
  )
  const layer = http.pipe(
    Layer.provideMerge(Gateway.core),
    Layer.provide(Secrets.layerTest),
    Layer.provideMerge(Gateway.stores),
    Layer.provide(Gateway.adapters),
    Layer.provideMerge(startedDatabase),
    Layer.provide(
      AppConfig.layerOf({
        DATA_DIR: temporaryFolder("passthrough"),
        ADMIN_TOKEN: adminToken,
        MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
        ...env
      })
    ),
    Layer.provide(Logger.layer([logger])),
    Layer.provide(Layer.succeed(References.MinimumLogLevel, "Trace")),
    Layer.provide(Layer.succeed(Admission, admission)),
    Layer.provide(tracer === undefined ? Layer.empty : Layer.succeed(Tracer.Tracer, tracer)),
    Layer.provideMerge(Gateway.platform)
  )
  const runtime = ManagedRuntime.make(layer)
  const made = await runtime.runPromise(
    Effect.gen(function* () {
      const server = yield* HttpServer.HttpServer
      const listener = yield* Listener
      const counted = { routed: 0 }
      listener.server.on("request", () => (counted.routed += 1))
      const { address } = server
      const port = "port" in address ? address.port : 0
      return {
        ...(yield* makeCaller(Number(credits))),
        port: Number(port),
        counted,
        open: () => listener.drain.open().length
      }
    })
  )
  const run = <A, E>(
    effect: Effect.Effect<A, E, Users | Wallet | Metering | ApiKeys | Drain>
  ): Promise<A> => runtime.runPromise(effect as Effect.Effect<A, E, never>)

  /** Polls the wallet in real time, up to a limit, until no call is open. */
  const settled = async () => {
    for (let tries = 0; tries < 1000; tries += 1) {
      const row = await run(Effect.flatMap(Wallet, (wallet) => wallet.get(made.userId)))
      if (row.held === 0n) return row
      await pause(10)
    }
    throw new Error("a call is still open")
  }
  const calls = () =>
    run(
      Effect.flatMap(Metering, (metering) =>
        Effect.map(metering.search(made.userId, { limit: 200 }), ({ rows }) => rows)
      )
    )
  const entries = () =>
    run(
      Effect.flatMap(Wallet, (wallet) =>
        Effect.map(
          wallet.search(made.userId, { before: Option.none(), limit: 100 }),
          ({ rows }) => rows
        )
      )
    )
  const drift = () => run(Effect.flatMap(Wallet, (wallet) => wallet.drift))
  const origin = `http://127.0.0.1:${made.port}`
  const post = (path: string, body: unknown, headers: Record<string, string> = {}, init = {}) =>
    fetch(`${origin}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${made.key}`,
        "content-type": "application/json",
        ...headers
      },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...init
    })
  return {
    /** `open`: requests whose client is still waiting for the end of the response. */
    ...made,
    /** Another user with credits and a key for calls. */
    newCaller: (credits: number) => run(makeCaller(credits, undefined, ["inference"])),
    /** How many requests reached the routes. Passthrough calls do not. */
    routed: () => made.counted.routed,
    origin,
    logs,
    run,
    settled,
    calls,
    entries,
    drift,
    /** The receipt of the newest call, when no call is open. */
    newest: async () => {
      await settled()
      assert.strictEqual(await drift(), 0)
      return (await calls())[0]!
    },
    post,
    /** `/metrics` with the operator's token, or with another one. */
    metrics: async (token: string | null = adminToken) => {
      const headers = token === null ? {} : { authorization: `Bearer ${token}` }
      return (await fetch(`${origin}/metrics`, { headers })).text()
    },
    stop: () => runtime.dispose()
  }
}

export type TestGateway = Awaited<ReturnType<typeof startGateway>>

/** The gateway of one test file, until the file ends. */
export const gatewayOfTests: typeof startGateway = async (...options) => {
  const gateway = await startGateway(...options)
  afterAll(() => gateway.stop())
  return gateway
}
