import { useState } from "preact/hooks"
import { basePath } from "../../api/address.ts"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { usePages } from "../../api/pages.ts"
import { CopyButton } from "../../components/CopyButton.tsx"
import { Confirm } from "../../components/form/DialogForm.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { SecretDialog } from "../../components/Secret.tsx"
import { viewedUser } from "../../router/location.ts"
import { keyTexts } from "../../texts/en/keys.ts"
import { actionsColumn, keyColumns } from "./keyColumns.tsx"
import type { KeyAction } from "./keyColumns.tsx"
import { KeyDialog } from "./KeyDialog.tsx"
import { changeOf, newKeyOf } from "./keyForm.ts"
import type { ApiKey, KeyFields } from "./keyForm.ts"
import { RotateDialog } from "./RotateDialog.tsx"

const words = keyTexts

type Asked =
  | { readonly what: "create" }
  | { readonly what: KeyAction; readonly key: ApiKey }
  | undefined

const pathOf = ({ id }: { readonly id: string }) => ({ path: { id } })

const createKey = async (fields: KeyFields): Promise<string> =>
  (await api.POST("/manage/v1/api-keys", { body: newKeyOf(fields) })).key

/** `/keys`: the API keys, their permissions, and what is left of their budgets. */
export default function KeysPage() {
  const keys = usePages("keys", "", (query) => api.GET("/manage/v1/api-keys", { query }))
  const [asked, setAsked] = useState<Asked>(undefined)
  const [secret, setSecret] = useState<string | undefined>(undefined)
  // The spent part of a budget changes with the wallet
  useLive((event) => {
    if ((event.type === "poll" || event.type === "wallet") && asked === undefined) keys.refresh()
  })
  const isReadOnly = viewedUser() !== undefined
  return (
    <>
      <PageHeader about={words.about}>
        {!isReadOnly && (
          <button type="button" class="primary" onClick={() => setAsked({ what: "create" })}>
            {words.create}
          </button>
        )}
      </PageHeader>
      <PagedTable
        words={words}
        columns={
          isReadOnly
            ? keyColumns
            : [...keyColumns, actionsColumn((what, key) => setAsked({ what, key }))]
        }
        pages={keys}
      />
      <Dialogs
        asked={asked}
        onClose={() => setAsked(undefined)}
        onChanged={keys.reload}
        onSecret={setSecret}
      />
      {secret !== undefined && (
        <SecretDialog
          title={words.secretTitle}
          detail={words.secretDetail}
          what={words.key}
          secret={secret}
          onClose={() => setSecret(undefined)}
        >
          <h3>{words.tryIt}</h3>
          <p class="secret">
            <code class="curl">{curlWith(secret)}</code>
            <CopyButton text={curlWith(secret)} what="curl" />
          </p>
        </SecretDialog>
      )}
    </>
  )
}

/** A free request: it lists the models that the key may use. */
const curlWith = (secret: string): string =>
  `curl ${globalThis.location.origin}${basePath}/v1/models -H "Authorization: Bearer ${secret}"`

interface DialogsProps {
  readonly asked: Asked
  readonly onClose: () => void
  readonly onChanged: () => void
  readonly onSecret: (secret: string) => void
}

const Dialogs = ({ asked, onChanged, onClose, onSecret }: DialogsProps) => {
  if (asked === undefined) return null
  if (asked.what === "create") {
    const create = async (fields: KeyFields) => {
      onSecret(await createKey(fields))
      onChanged()
    }
    return <KeyDialog onSubmit={create} onClose={onClose} />
  }
  const { key } = asked
  if (asked.what === "change") {
    const change = async (fields: KeyFields) => {
      const body = changeOf(key, fields)
      await api.PATCH("/manage/v1/api-keys/{id}", { ...pathOf(key), body })
      onChanged()
    }
    return <KeyDialog of={key} onSubmit={change} onClose={onClose} />
  }
  if (asked.what === "rotate") {
    const rotated = (secret: string) => {
      onSecret(secret)
      onChanged()
    }
    return <RotateDialog of={key} onRotated={rotated} onClose={onClose} />
  }
  const revoke = async () => {
    await api.DELETE("/manage/v1/api-keys/{id}", pathOf(key))
    onChanged()
  }
  return (
    <Confirm
      title={words.revokeTitle(key.name)}
      detail={words.revokeDetail}
      action={words.revoke}
      isDangerous
      onSubmit={revoke}
      onClose={onClose}
    />
  )
}
