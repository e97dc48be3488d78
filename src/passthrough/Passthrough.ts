import { Clock, Context, Effect, Exit, Layer, Result } from "effect"
import type { Cause } from "effect"
import { HttpServerError } from "effect/http"
import { nameOf } from "../catalog/Alias.ts"
import { Catalog } from "../catalog/Catalog.ts"
import { meantPaths } from "../catalog/RouteAliases.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { AppConfig } from "../config/Config.ts"
import { makeCallId } from "../domain/Ids.ts"
import { Problem, problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Drain } from "../process/Drain.ts"
import type { CallContent } from "../users/contents/CallContent.ts"
import { CallContents } from "../users/contents/CallContents.ts"
import { countFallback } from "../vendors/FallbacksTotal.ts"
import { unwatched } from "../vendors/upstream/StreamRelay.ts"
import { released } from "./CallBatches.ts"
import { CallBill } from "./CallBill.ts"
import { freeCallOf } from "./CallElsewhere.ts"
import { stillHeld } from "./CallHolds.ts"
import { candidatesOf, modelOf, planOf } from "./CallPlan.ts"
import type { CallCandidate, CallCandidates, CallPlan, SkippedModel } from "./CallPlan.ts"
import { makeTraceCall } from "./CallTelemetry.ts"
import type { TraceCall } from "./CallTelemetry.ts"
import { backgroundRefusal, keptCallOf, usesKeptResponses, withOwnId } from "./KeptResponses.ts"
import { Metering } from "./Metering.ts"
import type { CallEnd, CallStart, HeldCall } from "./Metering.ts"
import {
  aliasAt,
  isModelRoute,
  listedIn,
  modelElsewhere,
  refuseOtherModel,
  soldModels
} from "./ModelList.ts"
import { clientResponse, dropBodies, relay, requestOf, routeName } from "./PassthroughCall.ts"
import type { CallRequest, OpenPath, PassthroughCall, Relayed } from "./PassthroughCall.ts"
import { makeAbandonedStreams } from "./streams/AbandonedStreams.ts"
import type { AbandonedStreams } from "./streams/AbandonedStreams.ts"
import { skipReasonOf, UpstreamCalls } from "./UpstreamCalls.ts"
import type { Reached } from "./UpstreamCalls.ts"

type Failure = Problem | StoreUnavailable

/**
 * A call, from its request to its response and its receipt. docs/reference/passthrough.md, ADR 0113
 *
 * 1. authenticate the caller and the key
 * 2. read the body, within the limits for large bodies and taking turns with other callers' expensive ones
 * 3. plan: the models that may serve it, their maximum cost, and the limits of the key and the client
 * 4. hold that amount or, for a stream whose output is visible, its first slice; the same transaction checks the key
 * 5. reach an account of the vendor; for an alias, try the next model while nothing was bought
 * 6. relay the response, and meter it as it passes; the hold grows with the output of a visible stream
 * 7. settle by the upstream's figures, or release
 *
 * A request is one fiber. An interruption abandons the call. Once it holds credits, the fiber is uninterruptible except
 * for its waits, so that the hold is settled or released however the call ends.
 */
export class Passthrough extends Context.Service<
  Passthrough,
  {
    /**
     * Also fails with 2006 (vendor or route not open), 2007, or 1201 for a user who has abandoned too many streams.
     */
    readonly call: (request: CallRequest) => Effect.Effect<Relayed, Failure>
  }
>()("gateway/passthrough/Passthrough") {
  static readonly layer = Layer.effect(
    Passthrough,
    Effect.gen(function* () {
      const { abandonedStreamTimeout } = yield* AppConfig
      const clock = yield* Clock.Clock
      return Passthrough.of({
        call: callWith({
          abandoned: yield* makeAbandonedStreams(abandonedStreamTimeout, clock, yield* Drain),
          catalog: yield* Catalog,
          clock,
          contents: yield* CallContents,
          metering: yield* Metering,
          trace: yield* makeTraceCall,
          upstream: yield* UpstreamCalls
        })
      })
    })
  )
}

interface Services {
  readonly abandoned: AbandonedStreams
  readonly catalog: Catalog["Service"]
  readonly clock: Clock.Clock
  readonly contents: CallContents["Service"]
  readonly metering: Metering["Service"]
  readonly trace: TraceCall | undefined
  readonly upstream: UpstreamCalls["Service"]
}

const callWith = (services: Services) =>
  Effect.fnUntraced(function* (request: CallRequest): Effect.fn.Return<Relayed, Failure> {
    const to = yield* openPath(services.catalog.current().upstream, request)
    // 1
    const principal = yield* request.authenticate(to)
    const maxCost = yield* request.maxCost
    const { headers, traceId } = request
    const { isShared, query } = request.target
    // 2
    return yield* request.withBody(to.route, principal, ({ bytes: body, ...upload }) => {
      const call = { principal, to, isShared, query, headers, body, traceId, maxCost, ...upload }
      const isFree = to.route.meter.per === "nothing"
      if (usesKeptResponses(call)) {
        return isFree
          ? Effect.flatMap(keptCallOf(request, call), ({ call }) => relayFree(services, call))
          : relayKept(services, request, call)
      }
      return isFree ? relayFree(services, call) : relayPaid(services, request, call)
    })
  })

/** Relays a background response, or a call that continues one. docs/reference/background.md */
const relayKept = Effect.fnUntraced(function* (
  services: Services,
  request: CallRequest,
  given: PassthroughCall
): Effect.fn.Return<Relayed, Failure> {
  const { background, call, name } = yield* keptCallOf(request, given)
  if (!background) {
    const relayed = yield* relayPaid(services, request, call)
    return call.previous === undefined ? relayed : withOwnId(relayed, call.previous)
  }
  const { mayStill, responses } = request
  const nowMillis = services.clock.currentTimeMillisUnsafe()
  const planned = planOf(call, nowMillis)
  if (Result.isFailure(planned) && planned.failure.code === 2006) {
    const refusal = backgroundRefusal(call, name, planned.failure)
    return yield* responses.replay({ call, mayStill }, name, refusal)
  }
  const plan = yield* Effect.fromResult(planned)
  const model = call.to.catalog.priced(call.to.route.vendor, name)
  if (model === undefined) return yield* Effect.die("A call without a model was planned")
  const account = yield* services.upstream.accountFor(call)
  return yield* responses.create({ call, plan, model, account, mayStill })
})

const openPath = (
  upstream: UpstreamCatalog,
  { method, target }: CallRequest
): Exit.Exit<OpenPath, Problem> => {
  const { isShared, path, vendor } = target
  const listed = isShared ? listedIn(path) : undefined
  const match = upstream.match(vendor, method, listed === undefined ? path : "/v1/models")
  switch (match._tag) {
    case "Open":
      return Exit.succeed(listed === undefined ? match : { ...match, listed })
    case "OtherMethod": {
      const { allow } = match
      return Exit.fail(new Problem({ code: 2007, detail: `${method} is not allowed here`, allow }))
    }
    case "Closed":
      return Exit.fail(closedRoute(upstream, method, target))
  }
}

/** Relays an unmetered call, without a hold or a bill. */
const relayFree = Effect.fnUntraced(function* (
  { clock, upstream }: Services,
  given: PassthroughCall
) {
  const call = yield* Effect.fromResult(freeCallOf(given))
  const { listed, route } = call.to
  const now = clock.currentTimeMillisUnsafe()
  const { body } = yield* Effect.fromResult(planOf(call, now))
  const sandbox = upstream.isSandbox(route.provider)
  if (listed !== undefined) return yield* modelElsewhere(call, listed, sandbox, now)
  const alias = aliasAt(call.to, sandbox)
  if (alias !== undefined) return alias
  yield* refuseOtherModel(call.to)
  // A list of models is read. The vendor counts the call under its route
  const watch = isModelRoute(route) ? undefined : unwatched
  const request = requestOf(call, body, routeName(route), watch)
  const reached = yield* upstream.reach(route.provider, request)
  dropBodies(given, call, request)
  return yield* soldModels(call, relay(reached), now)
})

/** Steps 3 to 7 of a metered call. */
const relayPaid = (
  services: Services,
  request: CallRequest,
  call: PassthroughCall
): Effect.Effect<Relayed, Failure> =>
  Effect.uninterruptible(
    Effect.flatMap(
      retryWithFreshKey(request, call, (call) => Effect.suspend(() => planAndHold(services, call))),
      (paid) =>
        Effect.tapCause(relayInTurn(services, paid), () =>
          // Only a defect leaves the call open here; any other end has already closed it
          Effect.sync(() => paid.held.close(released(paid.start)))
        )
    )
  )

/** A call with its hold. */
interface PaidCall {
  readonly call: PassthroughCall
  readonly start: CallStart
  readonly models: CallCandidates
  readonly held: HeldCall
  readonly begunMillis: number
  /** Present for a user who keeps calls. */
  readonly content: CallContent | undefined
}

/** Steps 3 and 4. */
const planAndHold = (
  { abandoned, clock, contents, metering, trace, upstream }: Services,
  call: PassthroughCall
): Effect.Effect<PaidCall, Failure> => {
  if (call.to.route.meter.per === "tokens" && abandoned.isFull(call.principal.userId)) {
    return Effect.fail(tooManyLeft)
  }
  const begunMillis = clock.currentTimeMillisUnsafe()
  const id = makeCallId(begunMillis)
  const planned = candidatesOf(call, id, begunMillis, upstream.isSandbox)
  if (Result.isFailure(planned)) return Effect.fail(planned.failure)
  const models = planned.success
  const start = startOf(call, models, id, upstream)
  // A reservation is settled under the model for which it was held
  const mayDraw = models.alias === undefined && start.model !== null
  const paid = Effect.map(metering.hold(start, { nowMillis: begunMillis, mayDraw }), (held) =>
    kept(contents, { call, start, models, held, begunMillis, content: undefined })
  )
  return trace === undefined ? paid : Effect.flatMap(paid, (paid) => traced(trace, paid))
}

/** Records the content of a call; the settlement ends the record. */
const kept = (contents: CallContents["Service"], paid: PaidCall): PaidCall => {
  const { call, held, start } = paid
  const { isShared, query, to } = call
  const vendor = isShared ? "" : `/vendors/${to.route.vendor}`
  const content = contents.beginUnsafe(start.user, start.id, {
    path: `${vendor}${to.path}${query}`,
    body: call.body,
    isForm: call.upload !== undefined
  })
  if (content === undefined) return paid
  const close = (it: CallEnd) => {
    held.close(it)
    content.end()
  }
  return { ...paid, content, held: { ...held, close } }
}

/** Traces a call; the settlement ends its span. */
const traced = (trace: TraceCall, paid: PaidCall): Effect.Effect<PaidCall> => {
  const { held, models, start } = paid
  const [first] = models.candidates
  return Effect.map(trace(start, first), (end) => {
    const close = (it: CallEnd) => {
      end(it)
      held.close(it)
    }
    return { ...paid, held: { ...held, close } }
  })
}

/**
 * If the store refuses a key because it was revoked or changed since it was read, reads the key again and, if it may be
 * used, plans and holds once more. Nothing was held or sent before. A key that ends between the second read and its
 * hold is read a third time, which tells how it ended.
 */
const retryWithFreshKey = (
  request: CallRequest,
  call: PassthroughCall,
  attempt: (call: PassthroughCall) => Effect.Effect<PaidCall, Failure>,
  retries = 2
): Effect.Effect<PaidCall, Failure> =>
  Effect.catchIf(
    attempt(call),
    (error) => retries > 0 && error._tag === "Problem" && error.code === 1003,
    () => {
      request.forgetKey()
      return Effect.flatMap(Effect.interruptible(request.authenticate(call.to)), (principal) =>
        retryWithFreshKey(request, { ...call, principal }, attempt, retries - 1)
      )
    }
  )

const tooManyLeft = new Problem({
  code: 1201,
  detail:
    "Too many streams that you left are still read for their usage figures: read streams to their end",
  retryAfterSeconds: 1
})

const startOf = (
  call: PassthroughCall,
  { alias, candidates: [first], opening: amount }: CallCandidates,
  id: string,
  { isSandbox }: UpstreamCalls["Service"]
): CallStart => {
  const { principal, traceId: trace } = call
  const { catalog, route } = (alias === undefined ? first.call : call).to
  const { apiKeyId: key, limits, rotation, userId: user } = principal
  const start: CallStart = {
    id,
    user,
    key,
    rotation,
    amount,
    trace,
    vendor: route.vendor,
    model: alias === undefined ? first.plan.model : alias.alias,
    route: routeName(route),
    sandbox: isSandbox(first.call.to.route.provider),
    catalogId: catalog.id
  }
  return limits === undefined ? start : { ...start, checked: limits }
}

/**
 * Steps 5 to 7, for one model after another. The next model is tried only while nothing can have been bought, so no
 * byte of a response has reached the client. docs/reference/aliases.md#calls, ADR 0224
 */
const relayInTurn = Effect.fnUntraced(function* (
  services: Services,
  paid: PaidCall
): Effect.fn.Return<Relayed, Failure> {
  const { held, models } = paid
  const { candidates } = models
  const skipped = [...models.skipped]
  for (const [place, candidate] of candidates.entries()) {
    const { call, plan } = candidate
    const bill = billOf(services, paid, candidate, skipped)
    const request = requestOf(call, plan.body, limitedBy(plan, call), bill)
    // 5
    const reached = services.upstream.reach(call.to.route.provider, request)
    const exit = yield* Effect.exit(Effect.interruptible(reached))
    const reason = place === candidates.length - 1 ? undefined : skipReasonOf(exit)
    if (reason !== undefined) {
      bill.passOver()
      if (Exit.isSuccess(exit)) discard(exit.value)
      const model = modelOf(candidate)
      yield* countFallback(model, reason)
      skipped.push({ ...model, reason })
      continue
    }
    const kept = bill.isHeld() ? exit : yield* holdAgain(held, exit)
    if (Exit.isFailure(kept)) return yield* giveUp(bill, kept.cause)
    paid.content?.responds(clientResponse(kept.value))
    // 6 and 7: a whole response is settled now; a stream is metered as it passes, and settled as it ends
    dropBodies(paid.call, request)
    for (const it of candidates) dropBodies(it.call, it.plan)
    return relay(kept.value, {
      callId: paid.start.id,
      cost: bill.onResponse(kept.value),
      left: held.left,
      ending: plan.ending,
      by: models.alias && { model: nameOf(modelOf(candidate)), skipped }
    })
  }
  return yield* Effect.die("A call without a model was planned")
})

/** The model name for the vendor's rate limits. Dated versions of a model share its price and its rate. */
const limitedBy = ({ metered, model }: CallPlan, { to }: PassthroughCall): string =>
  metered._tag === "Tokens" ? metered.model.model : (model ?? routeName(to.route))

const billOf = (
  { abandoned, clock }: Services,
  { begunMillis, content, held, models: { alias }, start: { amount, id, user } }: PaidCall,
  candidate: CallCandidate,
  skipped: ReadonlyArray<SkippedModel>
): CallBill => {
  // The receipt names the model that responded
  const { vendor } = candidate.call.to.route
  const route = routeName(candidate.call.to.route)
  const named = alias && { alias: alias.alias, ...modelOf(candidate), route, skipped }
  const billed = { id, user, held: amount, begunMillis, alias: named, vendor, route }
  const { close, hold, raise } = held
  return new CallBill(billed, candidate.plan, candidate.call.body.length, {
    abandoned,
    clock,
    close,
    content,
    hold,
    raise
  })
}

/** A long silence may have lost the hold, so a whole response is relayed only if it is held again. ADR 0270 */
const holdAgain = ({ hold }: HeldCall, exit: Exit.Exit<Reached, Failure>) =>
  Effect.exit(Effect.interruptible(Effect.flatMap(exit, (reached) => stillHeld(hold, reached))))

/**
 * A client that leaves pays for a call that the upstream may be executing. In all other cases the call costs nothing.
 */
const giveUp = (bill: CallBill, cause: Cause.Cause<Failure>): Effect.Effect<never, Failure> => {
  if (hasClientLeft(cause)) bill.leave()
  else bill.release(null)
  return Effect.failCause(cause)
}

const hasClientLeft = ({ reasons }: Cause.Cause<unknown>): boolean =>
  reasons.some(
    (reason) =>
      reason._tag === "Interrupt" && reason.annotations.has(HttpServerError.ClientAbort.key)
  )

/** Destroys a stream that is not relayed. */
const discard = ({ response: { body } }: Reached): void => {
  if (!(body instanceof Uint8Array)) body.destroy()
}

/** The most routes that the problem names, because a catalog may open any number. */
const namedMax = 20

/** The problem for a path that is not open; it lists the open routes. docs/reference/passthrough.md#open-routes */
const closedRoute = (
  upstream: UpstreamCatalog,
  method: string,
  target: CallRequest["target"]
): Problem => {
  const { routes } = upstream
  const { isShared, path, vendor } = target
  const meant = meantPaths(isShared ? path : `/vendors/${vendor}${path}`).find((it) => {
    const [, to = "", rest = ""] = /^\/vendors\/([^/]+)(.*)$/u.exec(it.path) ?? []
    return upstream.match(to, method, rest)._tag === "Open"
  })
  if (meant !== undefined) return problem(2006, `There is no such route: ${meant.advice}`)
  const own = routes.filter((route) => route.vendor === vendor)
  const paths = own.map(({ method, path }) => `${method} /vendors/${vendor}${path}`)
  const more = "An operator opens more with CATALOG_FILE"
  if (paths.length === 0) {
    const vendors = [...new Set(routes.map((route) => route.vendor))].join(", ")
    return problem(
      2006,
      `This vendor has no open routes here. Vendors that have: ${vendors}. ${more}`
    )
  }
  const rest = paths.length > namedMax ? ` and ${paths.length - namedMax} more` : ""
  const open = `${paths.slice(0, namedMax).join(", ")}${rest}`
  return problem(2006, `This route of ${vendor} is not open here. Open: ${open}. ${more}`)
}
