// Tell the server, each second, that the browser is sending files; once more when it has stopped.

const EVERY = 1000; // milliseconds
let was = false;

export default function ({ setTriggerValue }) {
  const timer = setInterval(() => {
    const sends = document.querySelector("[data-testid=stFileChipIconSpinner]") !== null;
    if (sends || was) setTriggerValue("sends", sends);
    was = sends;
  }, EVERY);
  return () => clearInterval(timer);
}
