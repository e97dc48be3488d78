import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { DialogForm } from "../../components/form/DialogForm.tsx"
import { SelectField } from "../../components/form/Field.tsx"
import { keyTexts } from "../../texts/en/keys.ts"
import type { ApiKey } from "./keyForm.ts"

const words = keyTexts

/** Seconds for which the old secret still works. */
const graces = [0, 3600, 86_400, 604_800] as const

interface Props {
  readonly of: ApiKey
  readonly onRotated: (secret: string) => void
  readonly onClose: () => void
}

/** Creates a new secret for a key, which keeps its name, limits and history. */
export const RotateDialog = ({ of, onClose, onRotated }: Props) => {
  const [grace, setGrace] = useState<number>(86_400)
  const rotate = async () => {
    const rotated = await api.POST("/manage/v1/api-keys/{id}/rotate", {
      path: { id: of.id },
      body: { grace_seconds: grace }
    })
    onRotated(rotated.key)
  }
  return (
    <DialogForm
      title={words.rotateTitle(of.name)}
      action={words.rotate}
      onSubmit={rotate}
      onClose={onClose}
    >
      <p>{words.rotateDetail}</p>
      <SelectField
        label={words.grace}
        value={String(grace)}
        options={graces.map((it) => [String(it), words.graces[it]])}
        onText={(text) => setGrace(Number(text))}
      />
    </DialogForm>
  )
}
