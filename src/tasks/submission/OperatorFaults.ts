import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { Process } from "../../process/heartbeat/Process.ts"
import { countOperatorFault } from "../../vendors/accounts/OperatorFaultsTotal.ts"
import type { OperatorFaultCause } from "../../vendors/accounts/OperatorFaultsTotal.ts"
import { accountMissing } from "../../vendors/VendorError.ts"
import type { VendorError } from "../../vendors/VendorError.ts"
import { VendorFaultStore } from "./VendorFaultStore.ts"
import type { LastFault } from "./VendorFaultStore.ts"

/**
 * Tracks refusals of the service's own vendor accounts. Each fault is logged for the operator, counted, and stays open
 * for a minute in all processes. Meanwhile creates are refused, so that no money is held for a job that cannot be
 * submitted. ADR 0083.
 */
export class OperatorFaults extends Context.Service<
  OperatorFaults,
  {
    /** Opens the fault: the vendor refused the service's account. */
    readonly report: (
      accountId: string,
      upstreamModel: string,
      error: VendorError
    ) => Effect.Effect<void>
    /** Closes the fault: the vendor accepted a job of this model from this account. */
    readonly clear: (accountId: string, upstreamModel: string) => Effect.Effect<void>
    /** The last faults of all processes, including closed ones. */
    readonly last: Effect.Effect<ReadonlyArray<LastFault>, StoreUnavailable>
    /** Whether any fault is open. Reads memory only, so every create can check it first. */
    readonly hasOpen: () => boolean
    /** How much longer creates of this model are refused; `None` if they are not. */
    readonly remaining: (
      accountId: string,
      upstreamModel: string
    ) => Effect.Effect<Option.Option<Duration.Duration>>
  }
>()("gateway/tasks/submission/OperatorFaults") {
  static readonly layer = Layer.effect(
    OperatorFaults,
    Effect.gen(function* () {
      const store = yield* VendorFaultStore
      const { changed, publishChange } = yield* Process
      const faultsChanged = yield* changed("faults")
      const open = new Map<string, DateTime.Utc>()

      /** Reads the faults that other processes opened and closed. */
      const refresh = Effect.gen(function* () {
        const rows = yield* store.openFaults(yield* DateTime.now)
        open.clear()
        for (const { key, until } of rows) open.set(key, until)
      })
      yield* bestEffort(refresh).pipe(
        Effect.andThen(
          Effect.suspend(() =>
            open.size === 0 ? faultsChanged : Effect.timeoutOption(faultsChanged, refreshEvery)
          )
        ),
        Effect.forever,
        Effect.forkScoped
      )

      return OperatorFaults.of({
        report: Effect.fn("OperatorFaults.report")(function* (accountId, upstreamModel, error) {
          const cause = causeOf(error)
          const key = cause === "account" ? accountId : modelKey(accountId, upstreamModel)
          const at = yield* DateTime.now
          const until = DateTime.addDuration(at, openDuration)
          const isNew = !open.has(key)
          open.set(key, until)
          yield* countOperatorFault(accountId, cause)
          if (isNew) yield* Effect.logError(logLine(accountId, upstreamModel, cause, error))
          const { httpStatus = null } = error
          const remedy = remedyOf(cause, upstreamModel, error)
          yield* bestEffort(
            store.openFault({ key, until, accountId, model: upstreamModel, at, httpStatus, remedy })
          )
          publishChange("faults")
        }),
        clear: Effect.fnUntraced(function* (accountId, upstreamModel) {
          const keys = [accountId, modelKey(accountId, upstreamModel)].filter((it) => open.has(it))
          if (keys.length === 0) return
          for (const key of keys) open.delete(key)
          yield* bestEffort(store.closeFaults(keys))
          publishChange("faults")
        }),
        last: store.lastFaults,
        hasOpen: () => open.size > 0,
        remaining: (accountId, upstreamModel) =>
          Effect.map(DateTime.now, (now) => {
            const left = [accountId, modelKey(accountId, upstreamModel)]
              .flatMap((key) => Option.toArray(Option.fromUndefinedOr(open.get(key))))
              .map((until) => DateTime.toEpochMillis(until) - DateTime.toEpochMillis(now))
              .filter((millis) => millis > 0)
            return left.length === 0
              ? Option.none()
              : Option.some(Duration.millis(Math.max(...left)))
          })
      })
    })
  )
}

/** Creates are refused for this long; the first task afterwards tries the vendor again. */
const openDuration = Duration.minutes(1)
const refreshEvery = Duration.seconds(5)

const modelKey = (accountId: string, upstreamModel: string): string =>
  `${accountId}/${upstreamModel}`

/** A fault of the key or of billing concerns all models of the account; any other fault concerns one model. */
const causeOf = ({ class: kind, httpStatus, vendorCode = "" }: VendorError): OperatorFaultCause => {
  if (kind === "GONE") return "gone_model"
  return isMissing({ vendorCode }) ||
    httpStatus === 401 ||
    httpStatus === 402 ||
    /arrearage|bill|quota|api_?key|unauthenticated/iu.test(vendorCode)
    ? "account"
    : "model"
}

const isMissing = ({ vendorCode }: Pick<VendorError, "vendorCode">): boolean =>
  vendorCode === accountMissing

const remedyOf = (cause: OperatorFaultCause, upstreamModel: string, error: VendorError): string => {
  if (isMissing(error)) {
    return "restore the account in the configuration, or the previous MASTER_KEY"
  }
  switch (cause) {
    case "account":
      return "check the account's API key and base URL in the configuration, and its bill at the vendor"
    case "model":
      return `enable ${upstreamModel} for the account at the vendor, or correct its upstreamModel in CATALOG_FILE`
    case "gone_model":
      return `name its successor as upstreamModel in CATALOG_FILE, or remove the model`
  }
}

const logLine = (
  accountId: string,
  upstreamModel: string,
  cause: OperatorFaultCause,
  error: VendorError
): string => {
  const remedy = `Remedy: ${remedyOf(cause, upstreamModel, error)}`
  if (isMissing(error)) return `Jobs of account ${accountId} wait: ${error.message}. ${remedy}`
  const { httpStatus, message, requestId, vendorCode } = error
  return [
    cause === "gone_model"
      ? `The vendor no longer offers ${upstreamModel} to account ${accountId}`
      : `The vendor refuses account ${accountId} for ${upstreamModel}`,
    `(${[httpStatus, vendorCode].filter((it) => it !== undefined).join(" ")}: ${message}`,
    `request ${requestId ?? "unknown"}).`,
    remedy
  ].join(" ")
}

/** If the store is unavailable, the fault is known only to this process. */
const bestEffort = (work: Effect.Effect<void, StoreUnavailable>): Effect.Effect<void> =>
  Effect.catch(work, (error) => Effect.logWarning("Sharing open vendor faults failed", error))
