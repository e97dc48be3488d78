import { Effect } from "effect"
import { VendorError } from "./VendorError.ts"

/** A blocking call leaves nothing behind that could be asked for (F2 of vendors.md C). */
export const blocking = {
  poll: () =>
    Effect.fail(new VendorError({ class: "LOST", message: "A blocking call cannot be asked for" })),
  cancel: () => Effect.succeed("Unsupported" as const),
  reconcile: () => Effect.succeed([])
}
