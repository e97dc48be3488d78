import { Clock, Effect, Layer, Option, Redacted, Result, Stream } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import type { AccountSetting } from "../domain/Provider.ts"
import { Accounts } from "./accounts/Accounts.ts"
import type { NoAccountFree } from "./accounts/Accounts.ts"
import type { Adapter } from "./Adapter.ts"
import { accountsWith, adapterIn, jobsIn } from "./Adapters.ts"
import { sandboxAccount } from "./described/JobSandbox.ts"
import * as Download from "./Download.ts"
import { GuardedConnector, sendToNamed } from "./NamedHosts.ts"
import { SecretMask } from "./upstream/SecretMask.ts"
import type { ObserveResponse } from "./VendorCall.ts"
import { VendorClient } from "./VendorClient.ts"
import type { ChosenFor, VendorAccount } from "./VendorClient.ts"
import { accountMissing, VendorError } from "./VendorError.ts"
import * as VendorHttp from "./VendorHttp.ts"

/** Between adapter and account id, in the account id of an attempt. */
const separator = "@"

export interface VendorOptions {
  /** Serves vendors that have no key. */
  readonly simulator: Effect.Effect<{ readonly account: VendorAccount }>
  /** `DASHSCOPE_INSPECTION_OPT_OUT`. */
  readonly mayDisableInspection?: boolean
}

/**
 * Serves the configured accounts through the adapters that the catalog names, and vendors without a key through the
 * simulator. An attempt is stored with `<adapter>@<account id>`, so that its account is found again after a restart.
 * docs/reference/vendors.md#accounts
 */
export const layer = (options: VendorOptions) =>
  Layer.effect(
    VendorClient,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const catalog = yield* Catalog
      const adapterOf = (name: string) => adapterIn(catalog.current(), name)
      const makeAccount = yield* makeAccountFactory(options)
      const { account: simulator } = yield* options.simulator
      const made = new Map<string, readonly [AccountSetting, Adapter, VendorAccount]>()

      const accountFor = (name: string, account: AccountSetting): Option.Option<VendorAccount> => {
        const accountId = `${name}${separator}${account.id}`
        const known = made.get(accountId)
        const adapter = adapterOf(name)
        // Another process may have replaced the key of an account that was removed from the configuration
        if (known?.[0] === account && known[1] === adapter) return Option.some(known[2])
        if (adapter === undefined) return Option.none()
        const created = makeAccount(adapter, account, accountId)
        made.set(accountId, [account, adapter, created])
        return Option.some(created)
      }

      const isSandbox = (name: string): boolean => {
        const adapter = adapterOf(name)
        return adapter !== undefined && !accounts.isConfigured(adapter.provider)
      }

      /** The simulator plays a described vendor by its description. */
      const sandbox = (name: string): VendorAccount => {
        const protocol = jobsIn(catalog.current(), name)
        const adapter = adapterOf(name)
        return protocol === undefined || adapter === undefined
          ? simulator
          : sandboxAccount(adapter, protocol, simulator, sandboxContext(name, simulator))
      }

      const having = ({ adapter, upstreamModel }: ChosenFor) => {
        const found = adapterOf(adapter)
        return found === undefined ? [] : accountsWith(found, upstreamModel, accounts.configured())
      }

      return VendorClient.of({
        choose: Effect.fn("LiveVendors.choose")(function* (entry, options) {
          const { adapter, upstreamModel } = entry
          if (isSandbox(adapter)) return sandbox(adapter)
          const provider = adapterOf(adapter)?.provider
          if (provider === undefined) return yield* unknownAdapter(adapter)
          const among = having(entry)
          if (among.length === 0) return yield* noAccountWith(upstreamModel)
          const now = yield* Clock.currentTimeMillis
          const source = { model: upstreamModel, user: null }
          const order = accounts.order(provider, source, now, among)
          if (Result.isFailure(order) && options?.onlyFree === true) {
            return yield* noneFree(upstreamModel, order.failure.reason)
          }
          const account = Result.match(order, {
            onSuccess: (all) => Option.fromUndefinedOr(all[0]),
            // The response of that account says how long to wait
            onFailure: ({ soonest = "" }) => accounts.find(soonest)
          })
          const found = Option.flatMap(account, (it) => accountFor(adapter, it))
          return yield* Effect.mapError(Effect.fromOption(found), () => unknownAdapter(adapter))
        }),
        isServed: (entry) =>
          adapterOf(entry.adapter) === undefined ||
          isSandbox(entry.adapter) ||
          having(entry).some((account) => !accounts.isDraining(account)),
        accountsFor: (entry) =>
          isSandbox(entry.adapter)
            ? []
            : having(entry).flatMap((account) =>
                Option.toArray(accountFor(entry.adapter, account))
              ),
        owner: (accountId) => {
          if (accountId === simulator.accountId) return Effect.succeed(simulator)
          const at = accountId.indexOf(separator)
          if (accountId.slice(at + 1) === simulator.accountId) {
            return Effect.succeed(sandbox(accountId.slice(0, at)))
          }
          const found = Option.flatMap(accounts.find(accountId.slice(at + 1)), (account) =>
            accountFor(accountId.slice(0, at), account)
          )
          return Effect.mapError(Effect.fromOption(found), () => notConfigured(accountId))
        },
        isSandbox
      })
    })
  )

const sandboxContext = (name: string, { accountId }: VendorAccount) => ({
  account: {
    id: accountId,
    provider: name,
    key: Redacted.make("sandbox:sandbox"),
    baseUrl: "",
    weight: 1
  },
  accountId: `${name}${separator}${accountId}`,
  auth: {},
  toNamed: () =>
    Effect.fail(
      new VendorHttp.NoResponse({ sent: false, message: "a simulated vendor has no other hosts" })
    ),
  mayDisableInspection: false,
  observeResponse: () => Effect.void
})

const makeAccountFactory = Effect.fnUntraced(function* ({
  mayDisableInspection = false
}: VendorOptions) {
  const accounts = yield* Accounts
  const http = yield* VendorHttp.make()
  const connector = (yield* GuardedConnector)(VendorHttp.connectMillis)
  const guarded = yield* VendorHttp.make({ connector })
  const toNamed = yield* sendToNamed
  const downloads = yield* Download.make
  return (adapter: Adapter, account: AccountSetting, accountId: string): VendorAccount => {
    const auth = adapter.auth(Redacted.value(account.key))
    const observeResponse: ObserveResponse = (response, model = "") =>
      Effect.map(Clock.currentTimeMillis, (now) =>
        accounts.observe(account, { model, user: null }, response, now)
      )
    const context = {
      account,
      accountId,
      auth,
      http: masked(account.guarded === true ? guarded : http, SecretMask.of(account)),
      toNamed: masked(toNamed, SecretMask.of(account)),
      observeResponse,
      mayDisableInspection
    }
    const made = adapter.make(context)
    const download = downloads(account, auth)
    return {
      ...made,
      ...eventsOf(made, download),
      rateOf: rateWith(adapter, account, made),
      ...operatorLimit(account),
      isDraining: () => accounts.isDraining(account),
      download
    }
  }
})

/** Reads the events of a response as results are read: from the account's own origin, with its key. */
const eventsOf = (
  { eventsUrl }: VendorAccount,
  download: ReturnType<Download.Downloads>
): Pick<VendorAccount, "events"> =>
  eventsUrl === undefined
    ? {}
    : {
        events: Effect.fnUntraced(function* (handle, after) {
          const url = yield* eventsUrl(handle, after)
          const opened = yield* download({
            _tag: "Url",
            url,
            mime: "text/event-stream",
            needsAuth: true
          })
          return Option.match(opened, {
            onNone: () => Stream.empty,
            onSome: ({ stream }) => stream
          })
        })
      }

/** A larger response contains results rather than a message. */
const messageBytesMax = 1024 * 1024

/** Masks the account's key, which a vendor's message may quote. */
const masked =
  (http: VendorHttp.VendorHttp, mask: SecretMask): VendorHttp.VendorHttp =>
  (call) =>
    Effect.map(http(call), (response) => {
      if (response.body.length > messageBytesMax) return response
      const { headers, status } = response
      return { status, headers, body: mask.bytes(response.body) }
    })

/** One rate for the polls of all models of the account. */
const rateWith = (
  { pollsPerSecond }: Adapter,
  { id, polls = pollsPerSecond }: AccountSetting,
  made: VendorAccount
): NonNullable<VendorAccount["rateOf"]> => {
  const ofPolls =
    polls === undefined ? undefined : { key: `${id}/polls`, calls: polls, perMillis: 1000 }
  return (act, upstreamModel) => (act === "submit" ? made.rateOf?.(act, upstreamModel) : ofPolls)
}

/** The operator's limit counts all models together and replaces the vendor's. ADR 0108. */
const operatorLimit = ({
  concurrent: max,
  id: line
}: AccountSetting): Pick<VendorAccount, "slotsOf"> =>
  max === undefined ? {} : { slotsOf: () => ({ line, max }) }

const unknownAdapter = (adapter: string) =>
  new VendorError({
    class: "OPERATOR",
    message: `no adapter is called ${adapter}: correct the catalog's adapter`
  })

const noneFree = (upstreamModel: string, reason: NoAccountFree["reason"]) =>
  new VendorError({
    class: reason === "rate" ? "RATE_LIMITED" : "RETRYABLE",
    message: `no account may be called for ${upstreamModel} now`
  })

const noAccountWith = (upstreamModel: string) =>
  new VendorError({
    class: "OPERATOR",
    message: `no account has ${upstreamModel}: its region, or the vendor, does not offer it`
  })

const notConfigured = (accountId: string) =>
  new VendorError({
    class: "OPERATOR",
    vendorCode: accountMissing,
    message: `the account ${accountId} that owns the job is no longer configured`
  })
