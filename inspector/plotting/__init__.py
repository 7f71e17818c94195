"""What figures of several rooms are made of: colors, fonts, bars, frames."""
