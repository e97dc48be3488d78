import { Duration, Effect } from "effect"
import type { Progress } from "../../src/vendors/VendorClient.ts"
import { VendorError } from "../../src/vendors/VendorError.ts"

/** A vendor that accepts each job at once and returns this for each poll, with the number of its requests by kind. */
export const acceptingVendor = (answer: () => Progress | VendorError) => {
  const asked = { submits: 0, polls: 0, cancels: 0 }
  const vendor = {
    submit: () => {
      asked.submits += 1
      const pollAfter = Duration.seconds(2)
      return Effect.succeed({ _tag: "Accepted" as const, handle: { job: "j" }, pollAfter })
    },
    poll: () =>
      Effect.suspend(() => {
        asked.polls += 1
        const result = answer()
        return result instanceof VendorError ? Effect.fail(result) : Effect.succeed(result)
      }),
    cancel: () => {
      asked.cancels += 1
      return Effect.succeed("Canceled" as const)
    }
  }
  return { asked, vendor }
}

/** A finished job with one image. */
export const onePicture: Progress = {
  _tag: "Done",
  result: { items: [{ _tag: "Bytes", bytes: new Uint8Array([1]), mime: "image/png" }] }
}
