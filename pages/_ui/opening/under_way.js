// Tell the server, each second, that the browser is sending files; and again until it has noticed that they ended.

const EVERY = 1000; // milliseconds
let was = false;
let timer; // one, however often Streamlit calls this again: when its data or the theme changes

export default function ({ data, setTriggerValue }) {
  clearInterval(timer);
  const own = (timer = setInterval(() => {
    const sends = document.querySelector("[data-testid=stFileChipIconSpinner]") !== null;
    if (sends || was || data.arriving) setTriggerValue("sends", sends);
    was = sends;
  }, EVERY));
  return () => clearInterval(own);
}
