import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { DialogForm, FormFault } from "../../components/form/DialogForm.tsx"
import { TextField } from "../../components/form/Field.tsx"
import { isoOfLocalInput, isPast } from "../../format/time.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"
import type { Endpoint } from "./endpointForm.ts"

interface Props {
  readonly of: Endpoint
  readonly onRecovered: (count: number) => void
  readonly onClose: () => void
}

/** A call resends a limited number of deliveries; it is repeated for the rest. */
const recover = async (id: string, since: string, before = 0): Promise<number> => {
  const { has_more: hasMore, recovered } = await api.POST(
    "/manage/v1/webhook-endpoints/{id}/recover",
    {
      path: { id },
      body: { since }
    }
  )
  const count = before + recovered
  return hasMore ? recover(id, since, count) : count
}

/** Resends all failed and skipped deliveries of an endpoint since a given time. */
export const RecoverDialog = ({ of, onClose, onRecovered }: Props) => {
  const [since, setSince] = useState("")
  const time = isoOfLocalInput(since)
  const isFaulty = since !== "" && (time === undefined || !isPast(time))
  const submit = async () => {
    if (time === undefined || isFaulty) throw new FormFault()
    onRecovered(await recover(of.id, time))
  }
  return (
    <DialogForm
      title={words.recoverTitle}
      action={words.recover}
      onSubmit={submit}
      onClose={onClose}
    >
      <p>{words.recoverDetail(of.url)}</p>
      <TextField
        label={words.since}
        type="datetime-local"
        required
        error={isFaulty ? words.chooseTime : undefined}
        value={since}
        onText={setSince}
      />
    </DialogForm>
  )
}
