import { service } from "../../api/session.ts"
import { texts } from "../../texts/en.ts"

/** A link to where credits are bought, if the operator has configured one. */
export const BuyLink = () => {
  const url = service.value?.top_up_url ?? null
  return url === null ? null : (
    <a class="button" href={url} target="_blank" rel="noreferrer">
      {texts.buy}
    </a>
  )
}
