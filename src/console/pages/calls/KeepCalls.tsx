import { api } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import { Confirm, DialogButton } from "../../components/form/DialogForm.tsx"
import { viewedUser } from "../../router/location.ts"
import { contentTexts as words } from "../../texts/en/contents.ts"

/** Whether the user's requests and responses are kept. */
export const useKeepsCalls = () =>
  useResource(viewedUser() ?? "", () => api.GET("/manage/v1/settings", {}))

interface Props {
  readonly isKept: boolean
  readonly onChanged: (isKept: boolean) => void
}

/** The button that turns this on or off. An operator can only see the state. */
export const KeepCalls = ({ isKept, onChanged }: Props) => {
  const change = async () => {
    const body = { keep_calls: !isKept }
    onChanged((await api.PATCH("/manage/v1/settings", { body })).keep_calls)
  }
  if (viewedUser() !== undefined) return null
  return (
    <DialogButton label={isKept ? words.off : words.on}>
      {(close) => (
        <Confirm
          title={isKept ? words.offTitle : words.onTitle}
          detail={isKept ? words.offDetail : words.onDetail}
          action={isKept ? words.off : words.on}
          isDangerous={isKept}
          onSubmit={change}
          onClose={close}
        />
      )}
    </DialogButton>
  )
}
