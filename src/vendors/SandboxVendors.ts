import { Effect, Layer } from "effect"
import { make } from "./simulator/Simulator.ts"
import type { SimulatorOptions } from "./simulator/Simulator.ts"
import { VendorClient, VendorError } from "./VendorClient.ts"

/** Every vendor is served by the built-in simulator: no keys, no cost, real media. Contract 7. */
export const layer = (options: SimulatorOptions = {}) =>
  Layer.effect(
    VendorClient,
    Effect.map(make(options), ({ account }) =>
      VendorClient.of({
        choose: () => Effect.succeed(account),
        owner: (accountId) =>
          accountId === account.accountId
            ? Effect.succeed(account)
            : Effect.fail(
                new VendorError({
                  class: "OPERATOR",
                  message: `the account ${accountId} that owns the job is no longer configured`
                })
              ),
        isSandbox: () => true
      })
    )
  )
