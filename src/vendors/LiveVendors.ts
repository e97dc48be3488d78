import { Effect, Layer, Option, Redacted } from "effect"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import { make as makeSimulator } from "../sandbox/Simulator.ts"
import type { SimulatorOptions } from "../sandbox/Simulator.ts"
import { Accounts } from "./Accounts.ts"
import * as Download from "./Download.ts"
import { familyOf } from "./Families.ts"
import type { Family } from "./Families.ts"
import { VendorClient } from "./VendorClient.ts"
import type { VendorAccount } from "./VendorClient.ts"
import { VendorError } from "./VendorError.ts"
import type { VendorAnswer } from "./VendorHttp.ts"
import * as VendorHttp from "./VendorHttp.ts"

/** Where an attempt's account id says which family speaks for the account. */
const separator = "@"

export interface VendorOptions extends SimulatorOptions {
  /** `DASHSCOPE_INSPECTION_OPT_OUT`. */
  readonly mayDisableInspection?: boolean
}

/**
 * The configured accounts, each behind the family that the catalog names; vendors without a key are
 * served by the simulator (contract 7). An attempt is stored as `<adapter>@<account id>`, so that
 * its owner is found again after a restart.
 */
export const layer = (options: VendorOptions = {}) =>
  Layer.effect(
    VendorClient,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const open = yield* makeOpen(options)
      const simulator = (yield* makeSimulator(options)).account
      const made = new Map<string, VendorAccount>()

      const accountFor = (
        adapter: string,
        account: AccountSetting
      ): Option.Option<VendorAccount> => {
        const accountId = `${adapter}${separator}${account.id}`
        const known = made.get(accountId)
        if (known !== undefined) return Option.some(known)
        const family = familyOf(adapter)
        if (family === undefined) return Option.none()
        const fresh = open(family, account, accountId)
        made.set(accountId, fresh)
        return Option.some(fresh)
      }

      const isSandbox = (adapter: string): boolean => {
        const family = familyOf(adapter)
        return family !== undefined && !accounts.isConfigured(family.provider)
      }

      /** All may be paused: then the one that is free again first, and its own refusal says how long. */
      const soonest = Effect.fnUntraced(function* (provider: Provider) {
        const states = (yield* accounts.states)
          .filter((state) => state.provider === provider)
          .sort((a, b) => a.pausedMillis - b.pausedMillis)
        return accounts.find(states[0]?.id ?? "")
      })

      return VendorClient.of({
        choose: Effect.fn("LiveVendors.choose")(function* (_vendor, adapter) {
          if (isSandbox(adapter)) return simulator
          const provider = familyOf(adapter)?.provider
          if (provider === undefined) return yield* unknownAdapter(adapter)
          const account = yield* accounts.order(provider).pipe(
            Effect.map((all) => Option.fromUndefinedOr(all[0])),
            Effect.catchTag("NoAccountFree", () => soonest(provider))
          )
          const found = Option.flatMap(account, (it) => accountFor(adapter, it))
          return yield* Effect.mapError(Effect.fromOption(found), () => unknownAdapter(adapter))
        }),
        owner: (accountId) => {
          if (accountId === simulator.accountId) return Effect.succeed(simulator)
          const at = accountId.indexOf(separator)
          const found = Option.flatMap(accounts.find(accountId.slice(at + 1)), (account) =>
            accountFor(accountId.slice(0, at), account)
          )
          return Effect.mapError(Effect.fromOption(found), () => gone(accountId))
        },
        isSandbox: (_vendor, adapter) => isSandbox(adapter)
      })
    })
  )

/** Makes an account of a family, as it is asked through the wire. */
const makeOpen = Effect.fnUntraced(function* ({ mayDisableInspection = false }: VendorOptions) {
  const accounts = yield* Accounts
  const http = yield* VendorHttp.make
  const downloads = yield* Download.make
  return (family: Family, account: AccountSetting, accountId: string): VendorAccount => {
    const auth = family.auth(Redacted.value(account.key))
    const observeResponse = (answer: VendorAnswer) => accounts.observeResponse(account, answer)
    const line = { account, accountId, auth, http, observeResponse, mayDisableInspection }
    return { ...family.make(line), ...ownLimit(account), download: downloads(account, auth) }
  }
})

/** The operator's limit counts all models together, and takes the place of the vendor's. ADR 0108. */
const ownLimit = ({ concurrent: max, id: line }: AccountSetting): Pick<VendorAccount, "slotsOf"> =>
  max === undefined ? {} : { slotsOf: () => ({ line, max }) }

const unknownAdapter = (adapter: string) =>
  new VendorError({
    class: "OPERATOR",
    message: `no protocol family is called ${adapter}: correct the catalog's adapter`
  })

const gone = (accountId: string) =>
  new VendorError({
    class: "OPERATOR",
    message: `the account ${accountId} that owns the job is no longer configured`
  })
