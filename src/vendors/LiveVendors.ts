import { Effect, Layer, Option, Redacted } from "effect"
import type { AccountSetting } from "../domain/Provider.ts"
import { make as makeSimulator } from "../sandbox/Simulator.ts"
import type { SimulatorOptions } from "../sandbox/Simulator.ts"
import { Accounts } from "./Accounts.ts"
import { accountsWith, adapterOf } from "./Adapters.ts"
import type { Adapter } from "./Adapters.ts"
import * as Download from "./Download.ts"
import { VendorClient } from "./VendorClient.ts"
import type { VendorAccount } from "./VendorClient.ts"
import { VendorError } from "./VendorError.ts"
import type { VendorResponse } from "./VendorHttp.ts"
import * as VendorHttp from "./VendorHttp.ts"

/** Between adapter and account id, in the account id of an attempt. */
const separator = "@"

export interface VendorOptions extends SimulatorOptions {
  /** `DASHSCOPE_INSPECTION_OPT_OUT`. */
  readonly mayDisableInspection?: boolean
}

/**
 * The configured accounts, each with the adapter that the catalog names; the simulator serves vendors
 * without a key. An attempt is stored with `<adapter>@<account id>`, so that its account is found again
 * after a restart. docs/reference/vendors.md#accounts
 */
export const layer = (options: VendorOptions = {}) =>
  Layer.effect(
    VendorClient,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const makeAccount = yield* makeAccountFactory(options)
      const simulator = (yield* makeSimulator(options)).account
      const made = new Map<string, VendorAccount>()
      const settings = (yield* accounts.states).flatMap(({ id }) =>
        Option.toArray(accounts.find(id))
      )

      const accountFor = (name: string, account: AccountSetting): Option.Option<VendorAccount> => {
        const accountId = `${name}${separator}${account.id}`
        const known = made.get(accountId)
        if (known !== undefined) return Option.some(known)
        const adapter = adapterOf(name)
        if (adapter === undefined) return Option.none()
        const created = makeAccount(adapter, account, accountId)
        made.set(accountId, created)
        return Option.some(created)
      }

      const isSandbox = (name: string): boolean => {
        const adapter = adapterOf(name)
        return adapter !== undefined && !accounts.isConfigured(adapter.provider)
      }

      /** For when all are paused: first the one whose pause ends first. Its response has the wait. */
      const soonest = Effect.map(accounts.states, (states) =>
        states
          .toSorted((a, b) => a.pausedMillis - b.pausedMillis)
          .flatMap(({ id }) => Option.toArray(accounts.find(id)))
      )

      return VendorClient.of({
        choose: Effect.fn("LiveVendors.choose")(function* (_vendor, name, upstreamModel) {
          if (isSandbox(name)) return simulator
          const adapter = adapterOf(name)
          if (adapter === undefined) return yield* unknownAdapter(name)
          const free = yield* Effect.catchTag(
            accounts.order(adapter.provider),
            "NoAccountFree",
            () => Effect.succeed([])
          )
          const [first] = accountsWith(adapter, upstreamModel, free)
          const account = first ?? accountsWith(adapter, upstreamModel, yield* soonest)[0]
          const found = Option.flatMap(Option.fromUndefinedOr(account), (it) =>
            accountFor(name, it)
          )
          return yield* Effect.mapError(Effect.fromOption(found), () => notInRegion(upstreamModel))
        }),
        isServed: (name, upstreamModel) => {
          const adapter = adapterOf(name)
          return (
            adapter === undefined ||
            isSandbox(name) ||
            accountsWith(adapter, upstreamModel, settings).length > 0
          )
        },
        owner: (accountId) => {
          if (accountId === simulator.accountId) return Effect.succeed(simulator)
          const at = accountId.indexOf(separator)
          const found = Option.flatMap(accounts.find(accountId.slice(at + 1)), (account) =>
            accountFor(accountId.slice(0, at), account)
          )
          return Effect.mapError(Effect.fromOption(found), () => notConfigured(accountId))
        },
        isSandbox: (_vendor, adapter) => isSandbox(adapter)
      })
    })
  )

const makeAccountFactory = Effect.fnUntraced(function* ({
  mayDisableInspection = false
}: VendorOptions) {
  const accounts = yield* Accounts
  const http = yield* VendorHttp.make
  const downloads = yield* Download.make
  return (adapter: Adapter, account: AccountSetting, accountId: string): VendorAccount => {
    const auth = adapter.auth(Redacted.value(account.key))
    const observeResponse = (response: VendorResponse) =>
      accounts.observeResponse(account, response)
    const context = { account, accountId, auth, http, observeResponse, mayDisableInspection }
    return {
      ...adapter.make(context),
      ...operatorLimit(account),
      download: downloads(account, auth)
    }
  }
})

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

const notInRegion = (upstreamModel: string) =>
  new VendorError({
    class: "OPERATOR",
    message: `no account is in a region that has ${upstreamModel}`
  })

const notConfigured = (accountId: string) =>
  new VendorError({
    class: "OPERATOR",
    message: `the account ${accountId} that owns the job is no longer configured`
  })
