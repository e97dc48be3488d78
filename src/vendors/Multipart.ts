import { Effect } from "effect"

export interface FormFile {
  readonly name: string
  readonly mime: string
  readonly bytes: Uint8Array
}

/** A `multipart/form-data` body, its fields in order. */
export const multipart = (
  fields: ReadonlyArray<readonly [string, string | FormFile]>
): Effect.Effect<{ readonly contentType: string; readonly body: Uint8Array }> =>
  Effect.promise(async () => {
    const form = new FormData()
    for (const [name, value] of fields) {
      if (typeof value === "string") form.append(name, value)
      else form.append(name, new Blob([value.bytes.slice()], { type: value.mime }), value.name)
    }
    const whole = new Response(form)
    return {
      contentType: whole.headers.get("content-type") ?? "multipart/form-data",
      body: new Uint8Array(await whole.arrayBuffer())
    }
  })
