/** The schema of a body of a shipped model. */
export const object = (properties: object, required: ReadonlyArray<string>) => ({
  type: "object",
  properties: { ...properties },
  required,
  additionalProperties: false
})

export const oneOf = (values: ReadonlyArray<string>, fallback: string) => ({
  type: "string",
  enum: values,
  default: fallback
})

export const seed = { type: "integer", minimum: 0, maximum: 4_294_967_295 }

export const promptOf = (maxLength: number, description = "What the result shows") => ({
  type: "string",
  minLength: 1,
  maxLength,
  description
})

/**
 * The template of a picture that is sent as Base64 with its media type, which its first bytes tell (JPEG, PNG, WEBP).
 * `at` is a path without `$.`, such as `item`.
 */
export const inline = (at: string) => ({
  data: { $: `$.${at}` },
  media_type: {
    $cel: `${at}.startsWith("/9j/") ? "image/jpeg" : ${at}.startsWith("iVBOR") ? "image/png" : "image/webp"`
  }
})
