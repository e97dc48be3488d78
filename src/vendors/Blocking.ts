import { Effect } from "effect"
import { VendorError } from "./VendorError.ts"

/** A blocking call leaves no job to poll. docs/reference/vendors.md#adapters */
export const blocking = {
  poll: () =>
    Effect.fail(new VendorError({ class: "LOST", message: "A blocking call cannot be polled" })),
  cancel: () => Effect.succeed("Unsupported" as const)
}
