import { api } from "../../api/client.ts"
import { Confirm } from "../../components/form/DialogForm.tsx"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"
import { EndpointDialog } from "./EndpointDialog.tsx"
import { bodyOf } from "./endpointForm.ts"
import type { Endpoint, EndpointFields } from "./endpointForm.ts"
import { RecoverDialog } from "./RecoverDialog.tsx"

/** The actions on an endpoint. */
export type What = "test" | "change" | "rotate" | "recover" | "pause" | "resume" | "remove"

export type Asked =
  | { readonly what: "create" }
  | { readonly what: What; readonly endpoint: Endpoint }
  | undefined

interface Props {
  readonly asked: Asked
  readonly onClose: () => void
  readonly onChanged: () => void
  readonly onSecret: (secret: string) => void
  readonly onResent: (count: number) => void
}

/** The dialogs for creating and changing endpoints. */
export const EndpointDialogs = (props: Props) => {
  const { asked, onChanged, onClose, onResent, onSecret } = props
  if (asked === undefined) return null
  if (asked.what === "create") {
    const create = async (fields: EndpointFields) => {
      const made = await api.POST("/manage/v1/webhook-endpoints", { body: bodyOf(fields) })
      onSecret(made.secret)
      onChanged()
    }
    return <EndpointDialog onSubmit={create} onClose={onClose} />
  }
  const { endpoint, what } = asked
  if (what === "change") {
    const change = async (fields: EndpointFields) => {
      await update(endpoint, bodyOf(fields))
      onChanged()
    }
    return <EndpointDialog of={endpoint} onSubmit={change} onClose={onClose} />
  }
  if (what === "recover") {
    return <RecoverDialog of={endpoint} onRecovered={onResent} onClose={onClose} />
  }
  return <Sure {...props} what={what} endpoint={endpoint} onSecret={onSecret} />
}

const pathOf = ({ id }: Endpoint) => ({ path: { id } })

const update = (endpoint: Endpoint, body: ReturnType<typeof bodyOf> | { enabled: boolean }) =>
  api.PATCH("/manage/v1/webhook-endpoints/{id}", { ...pathOf(endpoint), body })

interface SureProps extends Props {
  readonly what: What
  readonly endpoint: Endpoint
}

const Sure = ({ endpoint, onChanged, onClose, onSecret, what }: SureProps) => {
  const confirm = async () => {
    if (what === "rotate") {
      const rotated = await api.POST("/manage/v1/webhook-endpoints/{id}/rotate", pathOf(endpoint))
      onSecret(rotated.secret)
    } else if (what === "remove") {
      await api.DELETE("/manage/v1/webhook-endpoints/{id}", pathOf(endpoint))
    } else {
      await update(endpoint, { enabled: false })
    }
    onChanged()
  }
  const asks = {
    rotate: [words.rotateTitle, words.rotateDetail],
    remove: [words.removeTitle, words.removeDetail],
    pause: [words.pauseTitle, words.pauseDetail]
  } as const
  if (what !== "rotate" && what !== "remove" && what !== "pause") return null
  const [title, detail] = asks[what]
  return (
    <Confirm
      title={title}
      detail={detail(endpoint.url)}
      action={words[what]}
      isDangerous={what === "remove"}
      onSubmit={confirm}
      onClose={onClose}
    />
  )
}
