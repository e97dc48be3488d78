import { Clock, Context, Effect, Exit, Layer, Result } from "effect"
import type { Readable } from "node:stream"
import type { Credits } from "../domain/Credits.ts"
import { makeCallId } from "../domain/Ids.ts"
import { Problem, problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { planCall } from "../models/CallPlan.ts"
import type { CallPlan } from "../models/CallPlan.ts"
import { Catalog } from "../models/Catalog.ts"
import type { OpenRoute } from "../models/OpenRoutes.ts"
import type { RouteMatch } from "../models/UpstreamCatalog.ts"
import type { Principal } from "./ApiKeys.ts"
import { CallBill } from "./CallBill.ts"
import { Metering } from "./Metering.ts"
import { toClientHeaders, toUpstreamHeaders } from "./RelayHeaders.ts"
import { UpstreamCalls } from "./UpstreamCalls.ts"
import type { Reached, UpstreamRequest } from "./UpstreamCalls.ts"

/** An open route and the path that goes upstream. */
export type OpenPath = Extract<RouteMatch, { readonly _tag: "Open" }>

/** A call of a client. */
export interface PassthroughCall {
  readonly principal: Principal
  readonly to: OpenPath
  /** With its question mark, or empty. */
  readonly query: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
  readonly traceId: string
}

/** What the client gets. */
export interface Relayed {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Uint8Array | Readable
  readonly sandbox: boolean
  /** Id of the receipt, when the call was metered. */
  readonly callId: string | undefined
  /** What it cost, when that is known before the answer goes out. */
  readonly cost: Credits | undefined
}

/** Hands a call to its vendor and the answer back, and meters it. Spec, points 2 to 4; contract 3 and 6. */
export class Passthrough extends Context.Service<
  Passthrough,
  {
    /** Fails with 2006 (vendor or route not open) or 2007. */
    readonly resolve: (
      vendor: string,
      method: string,
      path: string
    ) => Effect.Effect<OpenPath, Problem>
    readonly forward: (call: PassthroughCall) => Effect.Effect<Relayed, Problem | StoreUnavailable>
  }
>()("gateway/services/Passthrough") {
  static readonly layer = Layer.effect(
    Passthrough,
    Effect.gen(function* () {
      const { upstream: catalog } = yield* Catalog
      const metering = yield* Metering
      const upstream = yield* UpstreamCalls

      const resolve = (vendor: string, method: string, path: string) => {
        const match = catalog.match(vendor, method, path)
        switch (match._tag) {
          case "Open":
            return Effect.succeed(match)
          case "OtherMethod":
            return Effect.fail(
              new Problem({
                code: 2007,
                detail: `${method} is not allowed here`,
                allow: match.allow
              })
            )
          case "Closed":
            return Effect.fail(problem(2006, "This vendor, or this route of it, is not open here"))
        }
      }

      const plain = (call: PassthroughCall) =>
        Effect.map(
          upstream.reach(call.to.route.provider, requestOf(call, call.body, undefined)),
          (reached) => relay(reached, undefined, undefined)
        )

      // Most calls come here: from the hold to the answer in one wait of the fiber.
      const metered = (call: PassthroughCall, plan: CallPlan, now: number) => {
        const { provider } = call.to.route
        const id = makeCallId(now)
        const user = call.principal.userId
        const bill = new CallBill({ id, user }, plan, call.body.length, metering.closeUnsafe)
        const start = startOf(id, call, plan, upstream.isSandbox(provider))
        let isHeld = false
        const reached = Effect.callback<Reached, Problem | StoreUnavailable>((resume) => {
          let giveUp: () => void
          const send = () => {
            isHeld = true
            const request = requestOf(call, plan.body, bill.watch)
            giveUp = upstream.reachUnsafe(provider, request, now, resume)
          }
          if (metering.drawUnsafe(start, now)) send()
          else {
            giveUp = metering.openUnsafe(start, (held) => {
              if (Exit.isFailure(held)) resume(Effect.failCause(held.cause))
              else send()
            })
          }
          return Effect.sync(() => giveUp())
        })
        return Effect.uninterruptibleMask((restore) =>
          restore(reached).pipe(
            Effect.onError(() => Effect.sync(() => isHeld && bill.release(null))),
            Effect.map((reached) => relay(reached, id, bill.answered(reached)))
          )
        )
      }

      return Passthrough.of({
        resolve,
        forward: (call) => {
          const { model, route } = call.to
          const plan = planCall(catalog, route, model, call.body)
          if (Result.isFailure(plan)) return Effect.fail(plan.failure)
          return plan.success.metered._tag === "Nothing"
            ? plain(call)
            : Effect.flatMap(Clock.currentTimeMillis, (now) => metered(call, plan.success, now))
        }
      })
    })
  )
}

const startOf = (id: string, call: PassthroughCall, plan: CallPlan, sandbox: boolean) => ({
  id,
  user: call.principal.userId,
  key: call.principal.apiKeyId,
  amount: plan.hold,
  trace: call.traceId,
  vendor: call.to.route.vendor,
  model: plan.model,
  route: routeName(call.to.route),
  sandbox
})

const routeName = ({ method, path }: OpenRoute): string => `${method} ${path}`

const requestOf = (
  call: PassthroughCall,
  body: Uint8Array,
  watch: UpstreamRequest["watch"]
): UpstreamRequest => ({
  method: call.to.route.method,
  path: call.to.path,
  query: call.query,
  headers: toUpstreamHeaders(call.headers),
  body,
  watch
})

const relay = (
  { accountId, answer }: Reached,
  callId: string | undefined,
  cost: Credits | undefined
): Relayed => ({
  status: answer.status,
  headers: toClientHeaders(answer.headers),
  body: answer.body,
  sandbox: accountId === null,
  callId,
  cost
})
