import { api } from "../../api/client.ts"
import { answerOf, NoPasskey } from "../../api/passkeys.ts"
import type { Schemas } from "../../api/schema.ts"

interface NewPasskey {
  readonly name: string
  readonly password: string
}

/** Creates a passkey on this device, or on another one that the browser offers. */
export const addPasskey = async ({ name, password }: NewPasskey): Promise<Schemas["Passkey"]> => {
  const options = await api.GET("/manage/v1/passkeys/options", {})
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON({
    ...options,
    pubKeyCredParams: [...options.pubKeyCredParams],
    excludeCredentials: [...options.excludeCredentials]
  })
  const { id, rawId, response } = await answerOf(navigator.credentials.create({ publicKey }))
  if (!("attestationObject" in response)) throw new NoPasskey("No passkey")
  const { attestationObject, clientDataJSON } = response
  const type = "public-key" as const
  const credential = { id, rawId, type, response: { attestationObject, clientDataJSON } }
  const body = { name, credential, ...(password === "" ? {} : { current_password: password }) }
  return api.POST("/manage/v1/passkeys", { body })
}
